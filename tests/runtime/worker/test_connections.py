"""Handlers that keep connections: they wait neither for themselves nor for each other."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from mainspring import Context, JobState, Mainspring
from mainspring.db.connect import connect
from mainspring.db.pool import AsyncPool
from mainspring.runtime.worker import environment
from mainspring.runtime.worker.transactions import JobTransaction
from mainspring.store import attempts, recovery, workers
from mainspring.store.attempts import ClaimedRow
from mainspring.store.workers import WorkerFacts
from tests.support import reading
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

HANDLERS = 8
POOL_SIZE = 3


@pytest.fixture
def full() -> Iterator[threading.Barrier]:
    """Passed when the whole pool is in use."""
    barrier = threading.Barrier(POOL_SIZE, timeout=10)
    yield barrier
    barrier.abort()


async def test_handlers_in_transactions_can_save_checkpoints(app: Mainspring):
    inside, is_full = 0, asyncio.Event()

    @app.job
    async def save(ctx: Context) -> None:
        nonlocal inside
        async with ctx.transaction():
            inside += 1
            if inside == POOL_SIZE:
                is_full.set()
            await is_full.wait()
            await ctx.acheckpoint(1)
            await ctx.aparents()

    async with working(app, pool_size=POOL_SIZE):
        handles = [await save.aenqueue() for _ in range(HANDLERS)]
        jobs = [await ended(handle) for handle in handles]

    assert [job.state for job in jobs] == [JobState.SUCCEEDED] * HANDLERS


async def test_blocking_handlers_in_transactions_can_save_checkpoints(
    app: Mainspring, full: threading.Barrier
):
    @app.job(max_attempts=1)
    def save(ctx: Context) -> None:
        with ctx.transaction():
            full.wait()
            ctx.checkpoint(1)
            ctx.parents()

    async with working(app, pool_size=POOL_SIZE):
        handles = [await save.aenqueue() for _ in range(2 * POOL_SIZE)]
        jobs = [await ended(handle) for handle in handles]

    assert [job.state for job in jobs] == [JobState.SUCCEEDED] * len(handles)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_gets_no_connection_fails_and_says_what_to_do(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, *, is_async: bool
):
    monkeypatch.setattr(environment, "_WAIT_SECONDS", 0.2)
    may_end = threading.Event()

    async def keep(ctx: Context) -> None:
        async with ctx.transaction():
            await asyncio.to_thread(may_end.wait)

    def keep_in_thread(ctx: Context) -> None:
        with ctx.transaction():
            may_end.wait()

    job = app.job(keep if is_async else keep_in_thread)
    async with working(app, pool_size=1):
        handles = [await job.aenqueue() for _ in range(2)]
        found = [asyncio.create_task(retried(handle)) for handle in handles]
        (done,), _ = await asyncio.wait(found, return_when=asyncio.FIRST_COMPLETED)
        may_end.set()
        for task in found:
            task.cancel()

    assert (
        "all 1 connections for ctx.transaction() were in use for 0.2 s; raise the worker's "
        "pool_size, lower its concurrency, or keep transactions shorter"
    ) in str(done.result().last_error)


async def test_a_handler_that_has_locked_its_job_does_not_hold_up_the_others(app: Mainspring):
    seen = asyncio.Event()

    @app.job
    async def lock(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await ctx.acheckpoint(1, connection=transaction)
            ctx.progress(1)
            await seen.wait()

    @app.job
    async def advance(ctx: Context) -> None:
        ctx.progress(2)
        await seen.wait()

    async def progress() -> object:
        return (await other.ajob()).progress

    async with working(app):
        locking = await lock.aenqueue()
        await await_until(lambda: is_running(locking), what="it is running")
        other = await advance.aenqueue()
        await await_until(progress, 5, "the progress of the other is stored")
        seen.set()
        assert (await ended(locking)).state is JobState.SUCCEEDED


async def is_running(handle) -> bool:
    return (await handle.ajob()).state is JobState.RUNNING


class Frozen(JobTransaction):
    """As of a process that stops between its report and the commit."""

    async def _aleave(self, error: BaseException | None) -> None:
        return None


async def test_a_job_is_recovered_whose_worker_is_gone_before_it_commits(
    app: Mainspring, database_url: str, connection: psycopg.Connection
):
    @app.job
    async def answer() -> None:
        return None

    await app.aregister_definitions()
    handle = await answer.aenqueue()
    own = await connect(database_url, name="test")
    facts = WorkerFacts("w", "host", 1, "", ("default",), 1, "1")
    worker_id = await workers.register(own, facts, timedelta(seconds=1))
    lanes = await attempts.discover(own, ["default"])
    (row,) = await attempts.claim(own, worker_id, [(lanes[0].lane, 0)], limit=1)
    pool = AsyncPool(database_url, size=1)
    transaction = Frozen(ClaimedRow(*row).report, worker_id, async_source=pool)
    async with transaction:
        await transaction.acommit((0, 0), None, None)

    async def recovered() -> bool:
        lost = await recovery.recover(own, max_losses=3, jitter=timedelta(0))
        return [each.job_id for each in lost] == [handle.id]

    await await_until(recovered, 5, "the job is recovered")
    assert reading.statuses(connection, handle.id) == ["lost"]
    await own.close()
