"""Reading ahead: what is read before its instant is fired at it, as it then is, or not at all."""

import time
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring import Mainspring
from mainspring.runtime.scheduler import due_batches
from mainspring.runtime.scheduler.due_batches import Written
from mainspring.runtime.scheduler.prefetch import Prefetch
from tests.support import rows, schedules
from tests.support.schedules import HOUR, SECOND, scheduling
from tests.support.waiting import await_until


@pytest.fixture
def slot(connection: psycopg.Connection) -> datetime:
    """The next slot of a schedule, some seconds ahead."""
    slot = datetime.now(UTC) + 5 * SECOND
    schedules.insert_schedule(connection, at=slot)
    moved = "update mainspring.clocks set next_slot_at = %s, next_run_at = %s"
    connection.execute(moved, [slot, slot])
    return slot


async def ahead_of(connection: AsyncConnection, slot: datetime, *, due_in: float) -> Prefetch:
    ahead = Prefetch()
    await ahead.read(connection, slot, due_at=time.monotonic() + due_in)
    return ahead


async def write(connection: AsyncConnection, ahead: Prefetch) -> Written:
    (batch,) = await ahead.take()
    return await due_batches.write(connection, batch)


async def test_nothing_is_taken_before_the_instant(aconnection: AsyncConnection, slot: datetime):
    ahead = await ahead_of(aconnection, slot, due_in=60)

    assert await ahead.take() == ()


async def test_a_timer_that_ends_a_little_early_is_waited_for(
    aconnection: AsyncConnection, slot: datetime
):
    ahead = await ahead_of(aconnection, slot, due_in=0.004)

    assert [batch.size for batch in await ahead.take()] == [1]


async def test_what_was_read_is_taken_once(aconnection: AsyncConnection, slot: datetime):
    ahead = await ahead_of(aconnection, slot, due_in=0)

    assert [batch.size for batch in await ahead.take()] == [1]
    assert await ahead.take() == ()


async def test_a_plan_is_not_kept_for_long(aconnection: AsyncConnection, slot: datetime):
    ahead = await ahead_of(aconnection, slot, due_in=-1.1)

    assert await ahead.take() == ()


async def test_an_instant_is_read_once(
    aconnection: AsyncConnection, connection: psycopg.Connection, slot: datetime
):
    ahead = await ahead_of(aconnection, slot, due_in=0)
    connection.execute("update mainspring.schedules set enabled = false")

    await ahead.read(aconnection, slot, due_at=time.monotonic())

    assert [batch.size for batch in await ahead.take()] == [1]


async def test_nothing_fires_before_the_clock_of_the_database_says_so(
    aconnection: AsyncConnection, connection: psycopg.Connection, slot: datetime
):
    ahead = await ahead_of(aconnection, slot, due_in=0)

    assert (await write(aconnection, ahead)).fired == 0
    assert rows.count(connection, "slots") == rows.count(connection, "jobs") == 0


async def test_what_was_disabled_since_it_was_read_does_not_fire(
    aconnection: AsyncConnection, connection: psycopg.Connection, slot: datetime
):
    ahead = await ahead_of(aconnection, slot, due_in=0)
    connection.execute("update mainspring.schedules set enabled = false")
    connection.execute("update mainspring.clocks set next_run_at = now()")

    assert (await write(aconnection, ahead)).fired == 0


async def test_what_needs_more_than_a_slot_is_left_to_the_reading_at_the_instant(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, catch_up="all")
    schedules.miss(connection, "tick", 3 * HOUR)
    ahead = await ahead_of(aconnection, datetime.now(UTC), due_in=0)

    assert await ahead.take() == []


async def test_a_scheduler_reads_ahead_of_each_slot_and_fires_it(
    app: Mainspring, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    taken: list[int] = []
    take = Prefetch.take

    async def noting(self: Prefetch) -> object:
        batches = await take(self)
        taken.extend(batch.size for batch in batches)
        return batches

    monkeypatch.setattr(Prefetch, "take", noting)
    for name in ("one", "two"):
        schedules.insert_schedule(connection, name, every=SECOND, max_running=100)
    async with scheduling(app):
        await await_until(lambda: 2 in taken and schedules.decided(connection, "two"))

    assert {*schedules.outcomes(connection, "one")} == {"enqueued"}
    assert len(schedules.slots(connection, "one")) == len(schedules.slots(connection, "two"))
