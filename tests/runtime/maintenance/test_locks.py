"""A lock that one duty waits for holds up neither the other duties nor the other rows."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from mainspring import JobState, Mainspring
from mainspring.runtime.maintenance.batches import Batch, run_batch
from tests.support.rows import insert_job
from tests.support.waiting import await_until
from tests.support.workers import ended, working

MAINTENANCE_WAITS = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
   and application_name = 'mainspring maintenance'
"""


@pytest.fixture
def blocker(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url) as blocker:
        yield blocker


async def test_delayed_jobs_start_while_another_duty_waits_for_a_lock(
    app: Mainspring, connection: psycopg.Connection, blocker: psycopg.Connection
):
    @app.job
    async def answer() -> int:
        return 42

    blocker.execute("lock table mainspring.approvals in access exclusive mode")
    async with working(app):
        await await_until(lambda: connection.execute(MAINTENANCE_WAITS).fetchone() == (1,))
        handle = await answer.options(delay=timedelta(seconds=0.1)).aenqueue()

        assert (await ended(handle)).result == 42
        blocker.rollback()


async def test_a_row_that_is_locked_is_set_aside_for_half_a_minute(
    connection: psycopg.Connection, aconnection: psycopg.AsyncConnection, blocker
):
    jobs = [insert_job(connection, JobState.QUEUED) for _ in range(4)]
    await aconnection.execute("set lock_timeout = '50ms'")
    blocker.execute("select from mainspring.jobs where job_id = %s for update", (jobs[1],))

    async def run(connection, chosen):
        sql = "update mainspring.jobs set tags = '{done}' where job_id = any (%s) returning job_id"
        cursor = await connection.execute(sql, (chosen or jobs,))
        return [row[0] for row in await cursor.fetchall()]

    async def find(_):
        return jobs

    for tries in (1, 2):
        async with asyncio.timeout(5):
            done = await run_batch(aconnection, Batch("tag", run, find))
        assert sorted(done) == [jobs[0], *jobs[2:]]
        ((tried, is_short),) = connection.execute(
            "select tries, again_at < now() + interval '31 seconds' from mainspring.set_aside"
        ).fetchall()
        assert (tried, is_short) == (tries, True)
