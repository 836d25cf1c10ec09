"""Any number of dispatchers, killed at the worst moment: each event is handled once."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGSTOP, Signals

import psycopg
import pytest

from tests.support import events, rows
from tests.support.schedules import StartScheduler, scheduler_processes
from tests.support.waiting import wait_until

EVENTS = 500
FOLDERS = 7
BLOCK = """
create or replace function block() returns trigger language plpgsql as $$
begin
    if new.payload ->> 'number' = '30' then
        perform pg_advisory_xact_lock_shared(4711);
    end if;
    return new;
end $$;
create or replace trigger block before insert on mainspring.jobs
    for each row execute function block();
"""
BLOCKED = """
select count(*) from pg_locks
 where locktype = 'advisory' and objid = 4711 and not granted
   and database = (select oid from pg_database where datname = current_database())
"""
# Each event and trigger, and the job that came of it.
TWICE = """
select count(*), count(distinct (event_id, trigger_id)), count(distinct job_id)
  from mainspring.dispatches where outcome = 'enqueued'
"""
NUMBERS = """
select count(*), count(distinct payload ->> 'number') from mainspring.job_status
 where tenant_id = 'default'
"""
DISPATCHERS = """
select count(*) from pg_stat_activity
 where application_name = 'mainspring dispatch' and datname = current_database()
"""


@pytest.fixture
def start_scheduler(database_url: str, tmp_path: Path) -> Iterator[StartScheduler]:
    with scheduler_processes(database_url, tmp_path) as start:
        yield start


def await_all(connection: psycopg.Connection, count: int) -> None:
    wait_until(lambda: connection.execute(DISPATCHERS).fetchone() == (count,), 30)


def has_handled(connection: psycopg.Connection, count: int) -> bool:
    return events.handled(connection) >= count


def test_two_dispatchers_handle_500_events_once_each(
    start_scheduler: StartScheduler, connection: psycopg.Connection
):
    events.insert_trigger(connection, payload={"number": "{{event.number}}"})
    events.insert_trigger(connection, "other", event="*", definition="gone")
    schedulers = [start_scheduler(), start_scheduler()]
    await_all(connection, 2)

    for _ in range(5):
        events.emit_many(connection, EVENTS // 5)

    wait_until(lambda: events.handled(connection) == EVENTS, 30, "all are handled")
    assert connection.execute(TWICE).fetchone() == (EVENTS, EVENTS, EVENTS)
    assert len(events.jobs(connection)) == EVENTS
    assert rows.count(connection, "dispatches") == 2 * EVENTS
    assert [scheduler.stop() for scheduler in schedulers] == [0, 0]
    told = "".join(scheduler.log for scheduler in schedulers)
    assert "deadlock" not in told
    assert "loop_failed" not in told


def test_two_dispatchers_agree_on_what_is_a_duplicate(
    start_scheduler: StartScheduler, connection: psycopg.Connection
):
    """Keys in changing order, which would be a circle of locks without an order of their own."""
    payload = {"folder": "{{event.folder}}"}
    for name in ("a", "b"):
        events.insert_trigger(connection, name, payload=payload, dedupe_window="1 hour")
    schedulers = [start_scheduler() for _ in range(2)]
    await_all(connection, 2)
    connection.execute(
        "select mainspring.emit('provider.x', jsonb_build_object('folder',"
        " (number * number + number / 50) %% %s)) from generate_series(1, %s) as number",
        (FOLDERS, EVENTS),
    )

    wait_until(lambda: events.handled(connection) == EVENTS, 30, "all are handled")
    found = {each["payload"]["folder"] for each in events.jobs(connection)}
    assert len(events.jobs(connection)) == 2 * len(found)
    assert sorted(set(events.outcomes(connection))) == ["duplicate", "enqueued"]
    assert "deadlock" not in "".join(scheduler.log for scheduler in schedulers)


@pytest.mark.parametrize("number", [SIGKILL, SIGSTOP])
def test_a_dispatcher_that_is_lost_in_the_middle_loses_and_doubles_nothing(
    start_scheduler: StartScheduler,
    connection: psycopg.Connection,
    database_url: str,
    number: Signals,
):
    connection.execute(BLOCK)
    events.insert_trigger(connection, payload={"number": "{{event.number}}"})
    first = start_scheduler()
    await_all(connection, 1)
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(4711)")
        with psycopg.connect(database_url, autocommit=True) as emitter:
            events.emit_many(emitter, 100)
        wait_until(lambda: connection.execute(BLOCKED).fetchone() == (1,), what="it is inside")
        first.signal(number)
    second = start_scheduler()
    second.started()

    wait_until(lambda: events.handled(connection) == 100, 30, "all are handled")
    assert connection.execute(NUMBERS).fetchone() == (100, 100)
    assert connection.execute(TWICE).fetchone() == (100, 100, 100)


def test_dispatchers_that_are_killed_again_and_again_lose_and_double_nothing(
    start_scheduler: StartScheduler, connection: psycopg.Connection
):
    events.insert_trigger(connection, payload={"number": "{{event.number}}"})
    steady = start_scheduler()
    for round_number in range(1, 4):
        doomed = start_scheduler()
        await_all(connection, 2)
        events.emit_many(connection, EVENTS)
        wait_until(partial(has_handled, connection, (round_number - 1) * EVENTS + 1), 30)
        doomed.kill()
        wait_until(partial(has_handled, connection, round_number * EVENTS), 8, "the other goes on")

    assert connection.execute(TWICE).fetchone() == (3 * EVENTS,) * 3
    assert connection.execute(NUMBERS).fetchone() == (3 * EVENTS, EVENTS)
    assert steady.stop() == 0
