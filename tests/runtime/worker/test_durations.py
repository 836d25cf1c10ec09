"""How long a job ran, as every interface shows it: to its end by the clock, and not to the
beginning of the transaction in which it ended."""

import asyncio
import threading
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.support import apps, reading
from tests.support import schedules as support
from tests.support.waiting import await_until
from tests.support.workers import working

HELD = """
create function public.held() returns jsonb language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(1);
    return '{"success": true, "message": "done"}';
end $$
"""
# A run is as long as its worker says, from the instant that the database gave the claim: until the
# worker had its answer, nothing is counted.
CLAIM = timedelta(milliseconds=100)
WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


class Held:
    """A handler in its transaction waits here until the test lets it go."""

    def __init__(self) -> None:
        self.has_begun, self.may_go = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.has_begun.set()
        assert self.may_go.wait(30)

    async def let_go(self, connection: psycopg.Connection) -> datetime:
        """The clock right before, well after it began."""
        assert await asyncio.to_thread(self.has_begun.wait, 30)
        began_at = clock(connection)
        await await_until(lambda: clock(connection) > began_at + 2 * CLAIM)
        instant = clock(connection)
        self.may_go.set()
        return instant


def clock(connection: psycopg.Connection) -> datetime:
    instant: datetime
    ((instant,),) = connection.execute("select clock_timestamp()").fetchall()
    return instant


async def ended(connection: psycopg.Connection, job_id: int) -> dict[str, Any]:
    await await_until(lambda: reading.job(connection, job_id)["finished_at"] is not None)
    return reading.job(connection, job_id)


async def test_a_job_that_ends_in_its_own_transaction_ends_by_the_clock(
    app: Mainspring, connection: psycopg.Connection
):
    held = Held()

    @app.job
    async def copy(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("select 1")
            await asyncio.to_thread(held.wait)

    async with working(app):
        job_id = (await copy.aenqueue()).id
        let_go_at = await held.let_go(connection)
        job = await ended(connection, job_id)

    assert job["finished_at"] > let_go_at - CLAIM


async def test_the_slot_of_a_run_in_its_own_transaction_shows_the_same_end(
    app: Mainspring, connection: psycopg.Connection
):
    held = Held()

    @app.job
    def copy(ctx: Context) -> None:
        with ctx.transaction() as transaction:
            transaction.execute("select 1")
            held.wait()

    async with working(app):
        support.insert_schedule(connection, definition="copy")
        job_id = (await app.schedules.atrigger("tick")).job_id or 0
        let_go_at = await held.let_go(connection)
        job = await ended(connection, job_id)

    (slot,) = support.slots(connection)
    assert slot["finished_at"] == job["finished_at"] > let_go_at - CLAIM


async def test_a_run_that_waited_for_its_turn_did_not_wait_since_the_transaction_began(
    app: Mainspring, connection: psycopg.Connection
):
    held = Held()

    @app.job
    def copy(ctx: Context) -> None:
        with ctx.transaction() as transaction:
            transaction.execute("select 1")
            held.wait()

    async with working(app):
        support.insert_schedule(connection, definition="copy", overlap="queue")
        await app.schedules.atrigger("tick")
        second = (await app.schedules.atrigger("tick")).job_id or 0
        let_go_at = await held.let_go(connection)
        job = await ended(connection, second)

    assert job["scheduled_for"] >= let_go_at


async def test_a_job_of_a_sql_function_ends_by_the_clock(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(HELD)
    connection.execute("select pg_advisory_lock(1)")
    await app.definitions.acreate(
        "held", "sql", function="public.held", role="pg_database_owner", trusted=True
    )
    async with working(app):
        job_id = (await app.aenqueue("held", {})).id
        await await_until(lambda: connection.execute(WAITING).fetchone() == (1,))
        began_at = clock(connection)
        await await_until(lambda: clock(connection) > began_at + 2 * CLAIM)
        let_go_at = clock(connection)
        connection.execute("select pg_advisory_unlock(1)")
        job = await ended(connection, job_id)

    (attempt,) = reading.attempts(connection, job_id)
    assert job["finished_at"] == attempt["finished_at"] > let_go_at - CLAIM


@pytest.mark.parametrize("count", [1, 3])
def test_a_job_enqueued_in_a_long_transaction_has_waited_only_since_then(
    shared_app: Mainspring, connection: psycopg.Connection, count: int
):
    with connection.transaction():
        connection.execute("select 1")
        before = clock(connection)
        payloads: list[dict[str, Any]] = [{}] * count
        (job_id, *_) = shared_app.enqueue_many(apps.add_effect, payloads, connection=connection)

    job = reading.job(connection, job_id)
    assert job["created_at"] >= before
    assert job["scheduled_for"] >= before
