"""What the watchdog does for one job waits neither for the database nor for another job."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.support import reading
from tests.support.waiting import await_until
from tests.support.workers import working

MAINTENANCE_WAITS = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
   and application_name = 'mainspring maintenance'
"""


@pytest.fixture
def blocker(database_url: str) -> Iterator[psycopg.Connection]:
    """Whatever asks for approvals that expire waits until this connection ends."""
    with psycopg.connect(database_url) as blocker:
        blocker.execute("lock table mainspring.approvals in access exclusive mode")
        yield blocker


async def test_a_timeout_is_kept_while_maintenance_hangs(
    app: Mainspring, connection: psycopg.Connection, blocker: psycopg.Connection
):
    stopped = asyncio.Event()

    @app.job(timeout=timedelta(seconds=0.2), max_attempts=1)
    async def overrun() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with working(app):
        await await_until(lambda: connection.execute(MAINTENANCE_WAITS).fetchone() == (1,))
        await overrun.aenqueue()
        async with asyncio.timeout(5):
            await stopped.wait()
        blocker.rollback()


async def test_progress_that_the_database_refuses_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    released = asyncio.Event()

    @app.job
    async def count(ctx: Context) -> None:
        ctx.progress(1)
        await released.wait()

    await app.aregister_definitions()
    bad, *others = app.enqueue_many(count, [{}] * 5)
    connection.execute(
        "create function public.refuse() returns trigger language plpgsql as $$ begin"
        " raise 'refused' using errcode = 'program_limit_exceeded'; end $$"
    )
    connection.execute(
        "create trigger refuse before update of progress on mainspring.jobs for each row"
        f" when (new.job_id = {bad}) execute function public.refuse()"
    )
    shown = "select job_id from mainspring.jobs where progress is not null order by job_id"

    async with working(app) as worker:
        worker_id = worker.worker_id
        await await_until(lambda: [row[0] for row in connection.execute(shown)] == others)
        released.set()
        await await_until(lambda: reading.states(connection) == {"succeeded": 5})
        assert worker.worker_id == worker_id
