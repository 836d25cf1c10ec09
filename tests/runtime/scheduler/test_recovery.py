"""Schedulers, workers and the database may die or hang at any moment; slots go on in time."""

import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGQUIT, SIGSTOP, Signals

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import reading, schedules
from tests.support.processes import StartWorker
from tests.support.schedules import (
    SECOND,
    SchedulerProcess,
    StartScheduler,
    scheduler_processes,
)
from tests.support.servers import own_server
from tests.support.waiting import wait_until

LAUNCHERS = "tests.support.asgi:app"
DELAY = """
drop table if exists delay;
create table delay as select 60 as seconds;
"""
BLOCK = """
create or replace function block() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(4711);
    return new;
end $$;
create or replace trigger block before insert on mainspring.jobs
    for each row execute function block();
"""
BLOCKED = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


@pytest.fixture
def start_scheduler(database_url: str, tmp_path: Path) -> Iterator[StartScheduler]:
    with scheduler_processes(database_url, tmp_path) as start:
        yield start


@pytest.fixture
def leader(start_scheduler: StartScheduler) -> SchedulerProcess:
    """The first of two schedulers, the one that holds the lock."""
    first = start_scheduler()
    wait_until(lambda: first.leads, 30)
    start_scheduler().started()
    return first


def tick(connection: psycopg.Connection) -> None:
    """A schedule that fires every second, and has begun to."""
    schedules.insert_schedule(connection, every=SECOND, max_running=1000)
    wait_until(lambda: schedules.decided(connection), 5)


def worst_lateness(connection: psycopg.Connection) -> float:
    return max(float(slot["lateness_seconds"]) for slot in schedules.slots(connection))


def expect_more(connection: psycopg.Connection) -> None:
    """Two more slots, and none of them with two jobs or late by more than two seconds."""
    count = len(schedules.slots(connection)) + 2
    wait_until(lambda: schedules.decided(connection, count=count), 10, "two more slots")
    assert worst_lateness(connection) < 2
    expect_one_job_each(connection)


def expect_one_job_each(connection: psycopg.Connection) -> None:
    # Of one instant: the next slot may come at any time.
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        enqueued = [slot for slot in schedules.slots(connection) if slot["outcome"] == "enqueued"]
        jobs = schedules.jobs(connection)
    assert [slot["job_id"] for slot in enqueued] == [job["job_id"] for job in jobs]
    assert [slot["scheduled_for"] for slot in enqueued] == [job["slot_at"] for job in jobs]


# The scheduler that leads


def test_another_fires_in_time_when_the_leader_is_killed(
    leader: SchedulerProcess, connection: psycopg.Connection
):
    tick(connection)

    leader.kill()

    expect_more(connection)


def test_another_fires_in_time_when_the_leader_is_paused_and_no_slot_twice_when_it_wakes_up(
    leader: SchedulerProcess, connection: psycopg.Connection
):
    tick(connection)
    leader.signal(SIGSTOP)
    expect_more(connection)

    leader.signal(SIGCONT)

    expect_more(connection)


@pytest.mark.parametrize("number", [SIGKILL, SIGSTOP])
def test_another_fires_in_time_what_the_leader_was_firing(
    leader: SchedulerProcess, connection: psycopg.Connection, number: Signals
):
    tick(connection)
    connection.execute(BLOCK)
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(4711)")
        wait_until(lambda: connection.execute(BLOCKED).fetchone() == (1,))
        leader.signal(number)

    expect_more(connection)


def test_a_new_leader_takes_over_the_checks_of_a_dead_one(
    leader: SchedulerProcess, connection: psycopg.Connection
):
    connection.execute(DELAY)
    schedules.insert_due(
        connection,
        condition_sql="select pg_sleep(seconds) is not null from delay",
        condition_timeout="60 seconds",
    )
    wait_until(lambda: is_sleeping(connection) and schedules.is_resting(connection, 2))
    connection.execute("update delay set seconds = 0")

    leader.kill()

    slot = wait_until(lambda: schedules.decided(connection), 8)
    assert slot["outcome"] == "enqueued"


# A scheduler that starts


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_starting_scheduler_takes_over_the_checks_of_a_dead_one(
    start_scheduler: StartScheduler, connection: psycopg.Connection, by_hand: bool
):
    connection.execute(DELAY)
    condition = "select pg_sleep(seconds) is not null from delay"
    schedules.insert_schedule(connection, condition_sql=condition, condition_timeout="60 seconds")
    first = start_scheduler()
    wait_until(lambda: schedules.is_planned(connection), 30)
    if by_hand:
        connection.execute("select mainspring.trigger_scheduled_job('tick')")
    else:
        schedules.make_due(connection)
    wait_until(lambda: is_sleeping(connection))
    connection.execute("update delay set seconds = 0")

    first.kill()
    start_scheduler()

    slot = wait_until(lambda: schedules.decided(connection), 10)
    assert (slot["outcome"], slot["trigger"] == "manual") == ("enqueued", by_hand)


def is_sleeping(connection: psycopg.Connection) -> bool:
    query = (
        "select count(*) from pg_stat_activity"
        " where wait_event = 'PgSleep' and datname = current_database()"
    )
    return connection.execute(query).fetchone() != (0,)


def test_a_starting_scheduler_closes_the_runs_of_a_dead_worker_at_once(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    start_scheduler: StartScheduler,
):
    worker = start_worker(lease_seconds=60)
    schedules.insert_schedule(connection, definition="take_a_while", payload={"seconds": 60})
    connection.execute("select mainspring.trigger_scheduled_job('tick')")
    wait_until(lambda: reading.notes(connection, "began"), 30)
    worker.kill()

    scheduler = start_scheduler()
    scheduler.started()

    (job,) = schedules.jobs(connection)
    assert (job["state"], job["losses"]) == ("queued", 0)
    assert reading.statuses(connection, job["job_id"]) == ["lost"]


# A scheduler that is told to stop


def test_an_idle_scheduler_leaves_at_once(
    start_scheduler: StartScheduler, connection: psycopg.Connection
):
    scheduler = start_scheduler()
    scheduler.started()
    stopped_at = time.monotonic()

    assert scheduler.stop() == 0

    assert time.monotonic() - stopped_at < 3
    assert not schedules.is_there(connection)


@pytest.mark.parametrize(
    "condition", [{"condition_sql": "select pg_sleep(60)"}, {"launcher": "Hang"}]
)
def test_a_scheduler_leaves_at_once_and_gives_back_what_it_was_checking(
    start_scheduler: StartScheduler, connection: psycopg.Connection, condition: dict[str, str]
):
    scheduler = start_scheduler(LAUNCHERS)
    schedules.insert_due(connection, condition_timeout="60 seconds", **condition)
    wait_until(lambda: schedules.schedule(connection)["checking_by"], 30)
    stopped_at = time.monotonic()

    assert scheduler.stop() == 0

    assert time.monotonic() - stopped_at < 3
    schedule = schedules.schedule(connection)
    assert (schedule["checking_by"], schedule["checking_until"]) == (None, None)
    assert (schedule["retry_count"], schedules.slots(connection)) == (0, [])


# The database


@pytest.mark.xdist_group("own server")
def test_a_scheduler_goes_on_after_a_crash_of_the_database_and_leaves_without_one(tmp_path: Path):
    with own_server() as server, scheduler_processes(server.url, tmp_path) as start:
        scheduler = start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            tick(connection)
        server.take_down(SIGKILL)
        server.bring_back()
        with psycopg.connect(server.url, autocommit=True) as connection:
            count = len(schedules.slots(connection)) + 2
            wait_until(lambda: schedules.decided(connection, count=count), 15)
            expect_one_job_each(connection)
        server.take_down(SIGQUIT)
        stopped_at = time.monotonic()
        try:
            assert scheduler.stop() == 0
            took = time.monotonic() - stopped_at
        finally:
            server.bring_back()
        assert took < 6
