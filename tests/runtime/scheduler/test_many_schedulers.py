"""Any number of schedulers, in processes of their own and inside a web server: one slot, one job.

Seven of them fight over two hundred schedules while the clock is driven through the minutes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support import rows, schedules
from tests.support.schedules import (
    MINUTE,
    Gunicorn,
    SchedulerProcess,
    gunicorn,
    scheduler_processes,
)
from tests.support.waiting import wait_until

SITE = "tests.support.asgi:site"
SCHEDULES = 200
MINUTES = 6
CHUNK = 20
WEB_WORKERS = 4
PROCESSES = 3

CONNECTED = (
    "select count(*) from pg_stat_activity"
    " where application_name = 'mainspring listen' and datname = current_database()"
)
ADD = """
insert into mainspring.schedules (name, definition, cron, max_running)
select 'minutely ' || number, 'work', '* * * * *', 1000 from generate_series(1, %s) as number
"""
# Two seconds ago, so that it is due for those as well who leave the first second to the leader.
# Locked in the order in which schedulers lock them.
DRIVE = """
with driven as (
    select schedule_id from mainspring.clocks
     where schedule_id %% %s = %s and next_slot_at = %s order by schedule_id for update
)
update mainspring.clocks as clock set next_run_at = now() - interval '2 seconds'
  from driven where driven.schedule_id = clock.schedule_id
"""
COMMON_SLOT = """
select max(next_slot_at) from mainspring.clocks
having count(next_slot_at) = %s and min(next_slot_at) = max(next_slot_at)
"""
JOBS = """
select count(*), count(distinct (job.schedule_id, job.slot_at)), count(slot.job_id)
  from mainspring.job_status as job
  left join mainspring.slots as slot
    on slot.job_id = job.job_id and slot.schedule_id = job.schedule_id
   and slot.scheduled_for = job.slot_at
"""


@pytest.fixture(scope="module")
def database_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@dataclass(frozen=True)
class Story:
    """The minutes that every schedule was driven through, and how the schedulers got on."""

    minutes: list[datetime]
    exit_codes: list[int]
    log: str


@pytest.fixture(scope="module")
def story(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("logs")
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        scheduler_processes(database_url, folder) as start,
        gunicorn(database_url, SITE, workers=WEB_WORKERS, folder=folder) as site,
    ):
        roles: list[Gunicorn | SchedulerProcess] = [site, *(start() for _ in range(PROCESSES))]
        await_all(connection, roles)
        rows.insert_definition(connection, "work")
        connection.execute(ADD, (SCHEDULES,))
        first = wait_until(lambda: common_slot(connection))
        assert first is not None
        minutes = [drive(connection, first + number * MINUTE) for number in range(MINUTES)]
        exit_codes = [role.stop() for role in roles]
        return Story(minutes, exit_codes, "".join(role.log for role in roles))


def await_all(connection: psycopg.Connection, roles: Sequence[Gunicorn | SchedulerProcess]) -> None:
    def are_there() -> bool:
        return connection.execute(CONNECTED).fetchone() == (WEB_WORKERS + PROCESSES,)

    try:
        wait_until(are_there, 60, "all schedulers listen")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{[role.log for role in roles]}") from None


def drive(connection: psycopg.Connection, minute: datetime) -> datetime:
    """Make a minute due, some schedules at a time, and wait until it was fired."""
    for chunk in range(SCHEDULES // CHUNK):
        with connection.transaction():
            connection.execute("set local session_replication_role = replica")
            connection.execute(DRIVE, (SCHEDULES // CHUNK, chunk, minute))
            connection.execute("notify mainspring, 'schedule:'")
    wait_until(lambda: common_slot(connection) == minute + MINUTE, 20, f"{minute} was fired")
    return minute


def common_slot(connection: psycopg.Connection) -> datetime | None:
    """The next slot of all schedules, if it is the same."""
    row = connection.execute(COMMON_SLOT, (SCHEDULES,)).fetchone()
    return row[0] if row else None


def test_every_schedule_has_one_slot_a_minute(story: Story, connection: psycopg.Connection):
    query = (
        "select scheduled_for, count(distinct schedule_id) from mainspring.slots"
        " where outcome = 'enqueued' group by scheduled_for order by scheduled_for"
    )
    expected = [(minute, SCHEDULES) for minute in story.minutes]
    assert connection.execute(query).fetchall() == expected
    assert rows.count(connection, "slots") == SCHEDULES * MINUTES


def test_every_slot_has_one_job(story: Story, connection: psycopg.Connection):
    assert connection.execute(JOBS).fetchall() == [(SCHEDULES * MINUTES,) * 3]


def test_the_minutes_follow_each_other(story: Story):
    assert all(minute.second == minute.microsecond == 0 for minute in story.minutes)
    assert {later - earlier for earlier, later in pairwise(story.minutes)} == {MINUTE}


def test_every_schedule_was_moved_once_a_minute(story: Story, connection: psycopg.Connection):
    query = "select distinct revision, enqueued_count, skipped_count from mainspring.clocks"
    assert connection.execute(query).fetchall() == [(1 + MINUTES, MINUTES, 0)]


def test_the_schedulers_did_not_wait_for_each_other_in_a_circle(story: Story):
    assert "deadlock" not in story.log


def test_all_of_them_left_in_peace(story: Story, connection: psycopg.Connection):
    assert story.exit_codes == [0] * (1 + PROCESSES)
    assert story.log.count("scheduler_stopped") == WEB_WORKERS + PROCESSES
    assert not schedules.is_there(connection)
