"""Progress that is reported right before the end: it is stored with the end, and never lost."""

import asyncio
from typing import Any

import psycopg
import pytest

from mainspring import Cancel, Context, Fail, JobState, Mainspring, Progress
from tests.support import apps
from tests.support.apps import PAGES, report_pages
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

LAST = Progress(PAGES, PAGES)


async def last_of(app: Mainspring, job: Any, state: JobState = JobState.SUCCEEDED) -> Any:
    async with working(app):
        over = await ended(await job.aenqueue())
        await app.database.close_loop()
    assert over.state is state
    return over.progress


async def test_of_an_async_handler(app: Mainspring):
    @app.job
    async def read(ctx: Context) -> None:
        report_pages(ctx)

    assert await last_of(app, read) == LAST


async def test_of_a_blocking_handler(app: Mainspring):
    @app.job
    def read(ctx: Context) -> int:
        report_pages(ctx)
        return PAGES

    assert await last_of(app, read) == LAST


async def test_of_a_handler_in_its_transaction(app: Mainspring):
    @app.job
    async def read(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("select 1")
            report_pages(ctx)

    assert await last_of(app, read) == LAST


async def test_of_a_blocking_handler_in_its_transaction(app: Mainspring):
    @app.job
    def read(ctx: Context) -> None:
        with ctx.transaction() as transaction:
            transaction.execute("select 1")
            report_pages(ctx)

    assert await last_of(app, read) == LAST


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (apps.read_pages_in_process, JobState.SUCCEEDED),
        (apps.read_pages_in_a_transaction_of_its_process, JobState.SUCCEEDED),
        (apps.read_pages_and_fail_in_process, JobState.DEAD_LETTER),
    ],
)
async def test_of_a_handler_in_a_process(shared_app: Mainspring, job, state: JobState):
    assert await last_of(shared_app, job, state) == LAST


async def test_of_a_plain_worker(app: Mainspring):
    def read(job_data: dict[str, Any], job_id: str, queue: Any) -> None:
        for page in range(1, PAGES + 1):
            queue.update_job(job_id, {"progress": {"current": page, "total": PAGES}})

    app.register_worker("read", read)
    async with working(app):
        over = await ended(await app.aenqueue("read", {}))

    assert over.progress is not None
    assert (over.progress.current, over.progress.total) == (PAGES, PAGES)


@pytest.mark.parametrize(
    ("answer", "state"), [(Fail("torn"), JobState.FAILED), (Cancel("enough"), JobState.CANCELED)]
)
async def test_of_a_handler_that_does_not_succeed(app: Mainspring, answer, state: JobState):
    @app.job
    async def read(ctx: Context) -> object:
        report_pages(ctx)
        return answer

    assert await last_of(app, read, state) == LAST


async def test_an_attempt_that_is_repeated_begins_without_progress(app: Mainspring):
    @app.job(max_attempts=2)
    async def read(ctx: Context) -> None:
        report_pages(ctx)
        raise ValueError("torn")

    async with working(app):
        waiting = await retried(await read.aenqueue())

    assert waiting.progress is None


async def test_what_is_on_its_way_when_the_handler_ends_is_not_lost(
    app: Mainspring, connection: psycopg.Connection
):
    """The worker is storing the report, and waits, while the job ends."""
    may_end = asyncio.Event()

    @app.job
    async def read(ctx: Context) -> None:
        report_pages(ctx)
        await may_end.wait()

    connection.execute("""
        create function wait() returns trigger language plpgsql as
            $$ begin perform pg_advisory_xact_lock_shared(1); return null; end $$;
        create trigger wait before update of progress on mainspring.jobs
            for each statement execute function wait();
        select pg_advisory_lock(1);
    """)
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    async with working(app):
        handle = await read.aenqueue()
        await await_until(lambda: connection.execute(waiting).fetchone() == (1,))
        may_end.set()
        over = await ended(handle)
        connection.execute("select pg_advisory_unlock(1)")

    assert over.progress == LAST


async def test_progress_is_stored_in_batches(app: Mainspring, connection: psycopg.Connection):
    @app.job
    async def read(ctx: Context) -> None:
        report_pages(ctx)

    connection.execute("""
        create table updates (at timestamptz);
        create function note() returns trigger language plpgsql as
            $$ begin insert into updates values (now()); return null; end $$;
        create trigger note after update of progress on mainspring.jobs
            for each row execute function note();
    """)
    async with working(app):
        handles = [await read.aenqueue() for _ in range(20)]
        for handle in handles:
            await ended(handle)

    ((updates,),) = connection.execute("select count(*) from updates").fetchall()
    assert updates <= len(handles)
