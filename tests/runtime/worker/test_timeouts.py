"""A handler that runs too long is stopped, whatever it is made of, and tried again."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest

from mainspring import Context, JobCanceled, Mainspring
from tests.support import apps, reading
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

SHORT = timedelta(seconds=0.2)
TOO_LONG = "the handler exceeded its timeout of 0.2 s"


@pytest.fixture
def released():
    """Set at the end of the test, so that no handler outlives it."""
    event = threading.Event()
    yield event
    event.set()


async def test_an_async_handler_is_canceled(app: Mainspring, connection: psycopg.Connection):
    seen: list[str] = []

    @app.job(timeout=SHORT, max_attempts=1)
    async def overrun() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("canceled")
            raise

    async with working(app):
        job = await ended(await overrun.aenqueue())

    assert (job.state, job.last_error, seen) == ("dead_letter", TOO_LONG, ["canceled"])
    assert reading.statuses(connection, job.id) == ["timeout"]


async def test_a_plain_function_that_looks_stops_by_itself(
    app: Mainspring, connection: psycopg.Connection, released: threading.Event
):
    seen: list[str] = []

    @app.job(timeout=SHORT, max_attempts=1)
    def overrun(ctx: Context) -> None:
        while not released.wait(0.01) and not ctx.is_canceled:
            pass
        seen.append("noticed")
        ctx.raise_if_canceled()

    async with working(app, cancel_grace_seconds=60):
        job = await ended(await overrun.aenqueue())

    assert (job.last_error, seen) == (TOO_LONG, ["noticed"])
    assert reading.statuses(connection, job.id) == ["timeout"]


async def test_a_plain_function_that_does_not_look_is_interrupted_after_the_grace(
    app: Mainspring, connection: psycopg.Connection, released: threading.Event
):
    interrupted_after: list[float] = []

    @app.job(timeout=SHORT, max_attempts=1)
    def overrun() -> None:
        began_at = time.monotonic()
        try:
            while not released.is_set():
                time.sleep(0.001)
        except JobCanceled:
            interrupted_after.append(time.monotonic() - began_at)
            raise

    async with working(app, cancel_grace_seconds=0.3):
        job = await ended(await overrun.aenqueue())

    assert reading.statuses(connection, job.id) == ["timeout"]
    assert interrupted_after[0] >= 0.5


@pytest.fixture
def untraced() -> Iterator[None]:
    """While an exception is pending for a blocked thread, CPython 3.11 never gets past a loop in
    a thread that is traced, as it is where coverage is measured."""
    own, others = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    sys.settrace(own)
    threading.settrace(others)


@pytest.mark.usefixtures("untraced")
async def test_a_thread_that_cannot_be_interrupted_is_left_behind(
    app: Mainspring, connection: psycopg.Connection, released: threading.Event
):
    @app.job(timeout=SHORT, max_attempts=1)
    def overrun() -> None:
        released.wait(30)

    @app.job
    def answer() -> int:
        return 42

    async with working(app, concurrency=2) as worker:
        stuck = await ended(await overrun.aenqueue())
        answered = await ended(await answer.aenqueue())
        assert worker.has_stuck_threads
        released.set()

    assert reading.statuses(connection, stuck.id) == ["timeout"]
    assert answered.result == 42


async def test_a_process_is_killed(shared_app: Mainspring, connection: psycopg.Connection):
    async with working(shared_app):
        job = await ended(await apps.overrun_in_process.aenqueue())
        await shared_app.database.close_loop()

    assert job.last_error == "the handler exceeded its timeout of 0.3 s"
    assert reading.statuses(connection, job.id) == ["timeout"]


async def test_a_timeout_is_a_failure_that_is_retried(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job(timeout=SHORT, max_attempts=2, backoff=apps.AT_ONCE)
    async def overrun_at_first(ctx: Context) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    async with working(app):
        job = await ended(await overrun_at_first.aenqueue())

    assert (job.state, job.result, job.failures) == ("succeeded", 2, 1)
    assert reading.statuses(connection, job.id) == ["timeout", "succeeded"]


async def test_a_handler_that_ends_in_time_is_left_alone(app: Mainspring):
    @app.job(timeout=timedelta(seconds=5))
    async def be_quick() -> str:
        await asyncio.sleep(0.1)
        return "done"

    async with working(app):
        job = await ended(await be_quick.aenqueue())

    assert job.result == "done"


async def test_a_timeout_that_strikes_during_the_commit_is_reported_and_frees_the_place(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(apps.TABLES + SLOW_COMMIT)

    @app.job(timeout=SHORT, max_attempts=2)
    async def commit_slowly(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("insert into effects values (%s)", (ctx.job_id,))

    @app.job
    async def answer() -> int:
        return 42

    async with working(app, concurrency=1, cancel_grace_seconds=60):
        job = await retried(await commit_slowly.aenqueue())
        assert await (await answer.aenqueue()).aresult(5) == 42

    assert reading.statuses(connection, job.id) == ["timeout"]
    assert reading.states(connection) == {"queued": 1, "succeeded": 1}


async def test_an_abandoned_attempt_that_ends_late_leaves_the_next_one_under_watch(
    app: Mainspring, connection: psycopg.Connection
):
    second_began, first_may_end = asyncio.Event(), asyncio.Event()

    @app.job(timeout=SHORT, max_attempts=2, backoff=apps.AT_ONCE)
    async def ignore_cancels_at_first(ctx: Context) -> None:
        if ctx.attempt == 2:
            second_began.set()
            await asyncio.Event().wait()
        while not first_may_end.is_set():
            with suppress(asyncio.CancelledError):
                await first_may_end.wait()

    async with working(app, cancel_grace_seconds=0.1):
        handle = await ignore_cancels_at_first.aenqueue()
        await await_until(second_began.is_set)
        first_may_end.set()
        job = await ended(handle)

    assert job.state == "dead_letter"
    assert reading.statuses(connection, job.id) == ["timeout", "timeout"]


SLOW_COMMIT = """
create function linger() returns trigger language plpgsql
    as $$ begin perform pg_sleep(1); return null; end $$;
create constraint trigger linger after insert on effects deferrable initially deferred
    for each row execute function linger();
"""
