"""Canceling a running job: it is asked, then forced, then left behind; the worker goes on."""

import asyncio
import threading
import time
from contextlib import suppress

import psycopg
import pytest

from mainspring import Context, JobHandle, Mainspring
from tests.support import apps, reading
from tests.support.waiting import await_until
from tests.support.workers import ended, working


@pytest.fixture
def began() -> threading.Event:
    return threading.Event()


async def cancel(app: Mainspring, handle: JobHandle, began: threading.Event) -> None:
    await await_until(began.is_set)
    assert await app.jobs.acancel(handle.id, "no longer wanted") == "running"


async def test_an_async_handler_is_canceled(
    app: Mainspring, connection: psycopg.Connection, began: threading.Event
):
    @app.job
    async def wait_for_ever() -> None:
        began.set()
        await asyncio.Event().wait()

    async with working(app):
        handle = await wait_for_ever.aenqueue()
        await cancel(app, handle, began)
        job = await ended(handle)

    assert (job.state, job.last_error, job.failures) == ("canceled", "no longer wanted", 0)
    assert reading.statuses(connection, job.id) == ["canceled"]


async def test_an_async_handler_has_time_to_clean_up(app: Mainspring, began: threading.Event):
    cleaned: list[str] = []

    @app.job
    async def clean_up() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            cleaned.append("cleaned")

    async with working(app, cancel_grace_seconds=5):
        handle = await clean_up.aenqueue()
        await cancel(app, handle, began)
        job = await ended(handle)

    assert (job.state, cleaned) == ("canceled", ["cleaned"])


async def test_a_plain_function_sees_it(app: Mainspring, began: threading.Event):
    @app.job
    def look_now_and_then(ctx: Context) -> None:
        began.set()
        for _ in range(3000):
            ctx.raise_if_canceled()
            time.sleep(0.01)

    async with working(app, cancel_grace_seconds=60):
        handle = await look_now_and_then.aenqueue()
        await cancel(app, handle, began)
        job = await ended(handle)

    assert (job.state, job.last_error) == ("canceled", "no longer wanted")


async def test_a_plain_function_that_does_not_look_is_interrupted(
    app: Mainspring, began: threading.Event
):
    @app.job
    def never_look() -> None:
        began.set()
        for _ in range(3000):
            time.sleep(0.01)

    async with working(app):
        handle = await never_look.aenqueue()
        await cancel(app, handle, began)
        job = await ended(handle)

    assert job.state == "canceled"


@pytest.mark.parametrize("job", [apps.hang_in_process, apps.stop_when_asked_in_process])
async def test_a_process_is_asked_and_then_killed(
    shared_app: Mainspring, connection: psycopg.Connection, job
):
    async with working(shared_app):
        handle = await job.aenqueue()
        await await_until(lambda: reading.notes(connection, "began"))
        await shared_app.jobs.acancel(handle.id, "no longer wanted")
        canceled = await ended(handle)
        await shared_app.database.close_loop()

    assert (canceled.state, canceled.last_error) == ("canceled", "no longer wanted")
    noticed = [note["job_id"] for note in reading.notes(connection, "noticed")]
    assert noticed == ([handle.id] if job is apps.stop_when_asked_in_process else [])


async def test_a_handler_that_swallows_it_is_left_behind_and_the_worker_goes_on(
    app: Mainspring, began: threading.Event
):
    may_end = asyncio.Event()

    @app.job
    async def swallow() -> None:
        began.set()
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    @app.job
    async def answer() -> int:
        return 42

    async with working(app, concurrency=2):
        handle = await swallow.aenqueue()
        await cancel(app, handle, began)
        assert (await ended(handle)).state == "canceled"
        assert await (await answer.aenqueue()).aresult(5) == 42
        may_end.set()


async def test_a_place_is_free_again_when_what_was_left_behind_ends(
    app: Mainspring, began: threading.Event
):
    may_end = asyncio.Event()

    @app.job
    async def swallow() -> None:
        began.set()
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    @app.job
    async def answer() -> int:
        return 42

    async with working(app, concurrency=1):
        handle = await swallow.aenqueue()
        await cancel(app, handle, began)
        await ended(handle)
        may_end.set()
        assert await (await answer.aenqueue()).aresult(5) == 42


async def test_what_was_left_behind_keeps_no_transaction_open(
    app: Mainspring, connection: psycopg.Connection, began: threading.Event
):
    connection.execute(apps.TABLES)
    may_end = asyncio.Event()

    @app.job
    async def swallow(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("insert into effects values (%s)", (ctx.job_id,))
            began.set()
            while not may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await may_end.wait()

    async with working(app, concurrency=2):
        handle = await swallow.aenqueue()
        await cancel(app, handle, began)
        assert (await ended(handle)).state == "canceled"
        may_end.set()
        await await_until(lambda: not open_transactions(connection), 3, "it is rolled back")

    assert connection.execute("select * from effects").fetchall() == []


def open_transactions(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and state = 'idle in transaction'"
    ).fetchone()
    return row[0] if row else 0


async def test_a_job_that_is_canceled_before_it_starts_never_runs(app: Mainspring):
    runs: list[int] = []

    @app.job
    async def run() -> None:
        runs.append(1)

    handle = await run.aenqueue()
    assert await app.jobs.acancel(handle.id) == "canceled"

    @app.job
    async def answer() -> int:
        return 42

    async with working(app):
        assert await (await answer.aenqueue()).aresult(5) == 42

    assert ((await handle.ajob()).state, runs) == ("canceled", [])
