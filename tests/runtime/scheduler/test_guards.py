"""Whatever happened since it was read, and whatever the clock says: no slot fires twice."""

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.store import due_schedules as store
from mainspring.store.due_schedules import Firing
from tests.support import rows, schedules
from tests.support.schedules import HOUR, MINUTE, fire_at, plan_at
from tests.support.waiting import await_until

INTRUSIONS = {
    "disabled": "update mainspring.schedules set enabled = false",
    "paused": "update mainspring.schedules set paused_until = now() + interval '1 hour'",
    "edited": "update mainspring.schedules set cron = '0 3 * * *', every = null",
    "moved": "update mainspring.schedules set run_at = now() + interval '1 hour'",
    "deleted": "delete from mainspring.schedules",
}


# What was read may have changed


async def read(connection: AsyncConnection) -> list[Firing]:
    """What a scheduler is about to fire."""
    groups = await store.due(connection, limit=10)
    return [group.firing(group.now + HOUR) for group in groups]


@pytest.mark.parametrize("intrusion", INTRUSIONS.values(), ids=INTRUSIONS)
async def test_a_schedule_that_changed_between_read_and_fire_does_not_fire(
    aconnection: AsyncConnection, connection: psycopg.Connection, intrusion: str
):
    schedules.insert_due(connection)
    firings = await read(aconnection)
    connection.execute(intrusion)

    fired = await store.fire(aconnection, firings)

    assert (len(firings), fired.slots, fired.jobs) == (1, 0, 0)
    assert (rows.count(connection, "slots"), rows.count(connection, "jobs")) == (0, 0)


@pytest.mark.parametrize("intrusion", INTRUSIONS.values(), ids=INTRUSIONS)
async def test_a_schedule_that_changed_between_check_and_plan_does_not_fire(
    aconnection: AsyncConnection, connection: psycopg.Connection, intrusion: str
):
    schedules.insert_due(connection)
    plans = await plan_at(aconnection)
    connection.execute(intrusion)

    assert await store.apply_plans(aconnection, plans) == [None]

    assert (rows.count(connection, "slots"), rows.count(connection, "jobs")) == (0, 0)


@pytest.mark.parametrize(
    ("intrusion", "jobs"),
    [
        (INTRUSIONS["disabled"], 0),
        ("select mainspring.trigger_scheduled_job('tick')", 1),
    ],
)
async def test_a_fire_sees_what_was_not_yet_committed_when_it_began(
    aconnection: AsyncConnection, connection: psycopg.Connection, intrusion: str, jobs: int
):
    schedules.insert_due(connection, overlap="skip")
    firings = await read(aconnection)
    with connection.transaction():
        connection.execute(intrusion)
        firing = asyncio.create_task(store.fire(aconnection, firings))
        await await_until(lambda: is_waiting(connection, aconnection.info.backend_pid))

    assert (await firing).slots == 0
    assert (rows.count(connection, "slots"), rows.count(connection, "jobs")) == (jobs, jobs)


def is_waiting(connection: psycopg.Connection, pid: int) -> bool:
    return connection.execute("select pg_blocking_pids(%s)", (pid,)).fetchone() != ([],)


async def test_what_another_fired_is_not_fired_again(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    schedules.insert_due(connection, max_running=10)
    firings, plans = await read(aconnection), await plan_at(aconnection)

    first = await store.fire(aconnection, firings)
    second = await store.fire(aconnection, firings)

    assert (first.slots, first.jobs, second.slots, second.jobs) == (1, 1, 0, 0)
    assert await store.apply_plans(aconnection, plans) == [None]
    assert (rows.count(connection, "slots"), rows.count(connection, "jobs")) == (1, 1)


async def test_an_unchanged_schedule_fires(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    schedules.insert_due(connection)
    firings = await read(aconnection)
    connection.execute("update mainspring.schedules set enabled = true")

    assert (await store.fire(aconnection, firings)).slots == 1


# A clock that jumps


async def test_a_clock_that_steps_back_fires_no_slot_twice(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, cron="* * * * *", max_running=100)
    start = datetime.now(UTC).replace(second=0, microsecond=0) + HOUR
    schedules.update(connection, next_slot_at=f"'{start}'", next_run_at=f"'{start}'")

    minutes = [0, 1, 0.5, -600, 1, 2, 1.9, 3, -1, 4, 4]
    fired = [len(await fire_at(aconnection, start + minute * MINUTE)) for minute in minutes]

    assert fired == [1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0]
    slots = [slot["scheduled_for"] for slot in schedules.slots(connection)]
    assert slots == [start + number * MINUTE for number in range(5)]
    assert [job["slot_at"] for job in schedules.jobs(connection)] == slots


async def test_a_clock_that_leaps_ahead_and_back_fires_no_slot_twice(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, cron="* * * * *", max_running=100)
    start = datetime.now(UTC).replace(second=0, microsecond=0)
    schedules.update(connection, next_slot_at=f"'{start}'", next_run_at=f"'{start}'")

    for minute in (0, 60, 1, 2, 61):
        await fire_at(aconnection, start + minute * MINUTE)

    fired = [slot for slot in schedules.slots(connection) if slot["outcome"] == "enqueued"]
    assert [slot["scheduled_for"] for slot in fired] == [
        start,
        start + 60 * MINUTE,
        start + 61 * MINUTE,
    ]
