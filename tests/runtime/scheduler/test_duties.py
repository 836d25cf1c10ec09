"""What a scheduler does beside firing: a run that cannot be processed holds up no other run and no
other duty."""

from datetime import UTC, datetime
from functools import partial

import psycopg

from mainspring import JobState, Mainspring
from tests.support import reading
from tests.support.rows import insert_job
from tests.support.schedules import MINUTE, insert_schedule, scheduling
from tests.support.waiting import await_until

# Whatever keeps one row from being written: here a trigger, elsewhere an index or a corrupt page.
POISON = """
create function public.refuse_poison() returns trigger language plpgsql as
$$ begin raise exception 'job % is poison', old.job_id using errcode = '{sqlstate}'; end $$;
create trigger poison before update on mainspring.jobs
for each row when (old.tags = '{{poison}}') execute function public.refuse_poison();
"""
OF_A_ROW, DEADLOCK = "P0001", "40P01"


def poison(connection: psycopg.Connection, sqlstate: str) -> None:
    connection.execute(POISON.format(sqlstate=sqlstate).encode())


def insert_run(connection: psycopg.Connection, name: str, *, state: JobState, **columns) -> int:
    """A run of a schedule of its own, which nobody else would process."""
    schedule_id = insert_schedule(connection, name, enabled=False, run_timeout=MINUTE)
    slot_at = datetime.now(UTC)
    return insert_job(connection, state, schedule_id=schedule_id, slot_at=slot_at, **columns)


def overdue(connection: psycopg.Connection, name: str, **columns) -> int:
    return insert_run(connection, name, state=JobState.RUNNING, **columns)


def waiting(connection: psycopg.Connection, name: str, **columns) -> int:
    return insert_run(connection, name, state=JobState.QUEUED, waits_for="turn", **columns)


def is_asked_to_stop(connection: psycopg.Connection, job_id: int) -> bool:
    query = "select slot_at is null from mainspring.jobs where job_id = %s"
    return connection.execute(query, (job_id,)).fetchone() == (True,)


def may_go(connection: psycopg.Connection, job_id: int) -> bool:
    query = "select waits_for is null from mainspring.jobs where job_id = %s"
    return connection.execute(query, (job_id,)).fetchone() == (True,)


def aside(connection: psycopg.Connection) -> dict[str, list[int]]:
    """By duty, the jobs that are set aside."""
    query = "select duty, array_agg(key order by key) from mainspring.set_aside group by duty"
    return dict(connection.execute(query).fetchall())


async def test_a_run_that_cannot_be_closed_delays_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    poison(connection, OF_A_ROW)
    async with scheduling(app):
        bad = overdue(connection, "bad", tags=["poison"])
        good = [overdue(connection, f"good {number}") for number in range(5)]
        for job_id in good:
            await await_until(partial(is_asked_to_stop, connection, job_id), 5)

    assert aside(connection) == {"close_overdue": [bad]}
    assert reading.state(connection, bad) == "running"


async def test_a_run_whose_turn_cannot_be_given_delays_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    poison(connection, OF_A_ROW)
    async with scheduling(app):
        bad = waiting(connection, "bad", tags=["poison"])
        good = [waiting(connection, f"good {number}") for number in range(5)]
        for job_id in good:
            await await_until(partial(may_go, connection, job_id), 5)

    assert aside(connection) == {"release_turns": [bad]}


async def test_a_duty_that_fails_for_now_keeps_none_after_it_from_its_turn(
    app: Mainspring, connection: psycopg.Connection
):
    poison(connection, DEADLOCK)
    async with scheduling(app):
        overdue(connection, "bad", tags=["poison"])
        good = waiting(connection, "good")
        await await_until(lambda: may_go(connection, good), 5)

    assert aside(connection) == {}
