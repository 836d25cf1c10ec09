"""Jobs that become ready below the marks: named, and claimed without a walk over dead entries."""

from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from mainspring import Backoff, Context, JobState, Mainspring
from mainspring.domain.claiming.lanes import Lane
from mainspring.runtime.worker.worker import Worker
from tests.support.plans import measure
from tests.support.waiting import await_until
from tests.support.workers import ended, working

LANE = Lane(100, "default", "default")
MANY = """
insert into mainspring.jobs (definition, payload)
select 'work', jsonb_build_object('text', repeat('x', 200)) from generate_series(1, 10000)
"""
WORKER = """
insert into mainspring.workers
    (worker_id, expires_at, pid, concurrency, name, host, process_identity, queues, version)
values (7, 'infinity', 1, 1, 'w', 'h', '', '{default}', '0')
"""
DELAYED = """
insert into mainspring.jobs (definition, scheduled_for, waits_for)
values ('work', now() + interval '1 day', 'time') returning job_id
"""


@pytest.fixture
async def far_ahead(app: Mainspring) -> AsyncIterator[Worker]:
    """A worker that does not sweep, whose mark is behind the next hundred jobs."""

    @app.job
    async def work() -> str:
        return "done"

    @app.job(backoff=Backoff(timedelta(0), jitter=timedelta(0)))
    async def fail_once(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("it broke")
        return ctx.attempt

    async with working(app, poll_seconds=30) as worker:
        await ended(await work.aenqueue())
        book = worker.parts.claimer._order.lanes
        book.marks[LANE] = 100
        book.swept_at = float("inf")
        yield worker


async def test_a_delayed_job_starts_at_its_time_without_a_sweep(app: Mainspring, far_ahead: Worker):
    handle = await app.aenqueue("work", {}, delay=timedelta(milliseconds=200))

    assert await handle.aresult(5) == "done"


async def test_a_failed_job_whose_retry_is_due_at_once_starts_without_a_sweep(
    app: Mainspring, far_ahead: Worker
):
    handle = await app.aenqueue("fail_once", {})
    far_ahead.parts.claimer.jobs_ready(LANE, [handle.id])

    assert await handle.aresult(5) == 2


async def test_a_job_that_is_retried_by_hand_starts_at_once(
    app: Mainspring, far_ahead: Worker, connection: psycopg.Connection
):
    handle = await app.aenqueue("work", {}, delay=timedelta(hours=1))
    await app.jobs.acancel(handle.id)
    await app.jobs.aretry(handle.id)

    assert (await ended(handle, 5)).state is JobState.SUCCEEDED


async def test_a_job_that_another_worker_promotes_is_started_by_an_idle_one(
    app: Mainspring, far_ahead: Worker, connection: psycopg.Connection
):
    (job_id,) = connection.execute(DELAYED).fetchone() or ()
    connection.execute("update mainspring.jobs set waits_for = null")
    connection.execute("select mainspring.notify_jobs('default', 100, 'default', %s)", ([job_id],))

    def is_done() -> bool:
        row = connection.execute("select count(*) from mainspring.jobs").fetchone()
        return row == (0,)

    await await_until(is_done, 5)


def test_a_claim_of_a_named_job_reads_its_entry_and_none_of_the_dead_behind_it(
    connection: psycopg.Connection, database_url: str
):
    ((first,),) = connection.execute(DELAYED).fetchall()
    connection.execute("update mainspring.jobs set waits_for = null")
    connection.execute(WORKER)
    lane = {"queues": ["default"], "priorities": [100], "tenants": ["default"], "shares": [10]}
    claim = {**lane, "marks": [first - 1], "worker_id": 7, "limit": 10}
    with psycopg.connect(database_url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        connection.execute(MANY)
        holder.execute("select count(*) from mainspring.jobs")
        connection.execute("delete from mainspring.jobs where job_id > %s", (first,))
        connection.execute("set enable_seqscan = off")
        walk = measure(connection, "attempts", "claim", **claim, untils=[2**63 - 1])
        named = measure(connection, "attempts", "claim", **claim, untils=[first])

    assert walk.rows == named.rows == 1
    assert named.pages < 100 < walk.pages
