"""Places of limits are held by what runs, and by nothing that only could."""

import asyncio
from collections import Counter

import psycopg

from mainspring import Mainspring
from tests.support.waiting import await_until
from tests.support.workers import working

LIVE = "select count(*) from mainspring.jobs where queue = %s"
LOWER = """
alter table mainspring.limits disable trigger limits_touch;
update mainspring.definitions set concurrency = 1 where key = 'work';
update mainspring.limits set updated_at = now() - interval '1 day';
alter table mainspring.limits enable trigger limits_touch;
"""


def live(connection: psycopg.Connection, queue: str) -> int:
    ((count,),) = connection.execute(LIVE, (queue,)).fetchall()
    return int(count)


async def declare(app: Mainspring) -> None:
    """A definition without a limit, and one under a shared limit of two at once."""

    @app.job
    async def free() -> None:
        """Does nothing."""

    @app.job(limit="provider")
    async def limited() -> None:
        """Does nothing."""

    await app.aregister_definitions()
    await app.limits.aset("provider", concurrency=2)


async def test_jobs_of_a_queue_without_a_worker_hold_no_place_of_a_shared_limit(
    app: Mainspring, connection: psycopg.Connection
):
    await declare(app)
    await app.aenqueue_many("limited", [{}] * 5, queue="unserved")
    await app.aenqueue_many("limited", [{}] * 20)

    async with working(app):
        await await_until(lambda: live(connection, "default") == 0, 5, "the other queue is done")

    assert live(connection, "unserved") == 5


async def test_jobs_of_a_queue_without_a_worker_hold_no_place_of_their_tenant(
    app: Mainspring, connection: psycopg.Connection
):
    await declare(app)
    await app.tenants.acreate("acme", max_running=2)
    await app.aenqueue_many("free", [{}] * 5, queue="unserved", tenant_id="acme")
    await app.aenqueue_many("free", [{}] * 20, tenant_id="acme")

    async with working(app):
        await await_until(lambda: live(connection, "default") == 0, 5, "the other queue is done")

    assert live(connection, "unserved") == 5


async def test_an_urgent_job_takes_the_place_before_one_that_has_not_started(app: Mainspring):
    started: list[str] = []
    gate = asyncio.Event()

    @app.job
    async def occupy() -> None:
        started.append("occupy")
        await gate.wait()

    @app.job(concurrency=1)
    async def work(name: str) -> None:
        started.append(name)

    async with working(app, concurrency=1) as worker:
        await app.aenqueue("occupy", {})
        await await_until(lambda: started == ["occupy"])
        await app.aenqueue("work", {"name": "ordinary"})
        passes = worker.parts.maintenance.grants.loop.passes
        await await_until(lambda: worker.parts.maintenance.grants.loop.passes > passes + 1)
        await app.aenqueue("work", {"name": "urgent"}, priority=1)
        gate.set()
        await await_until(lambda: len(started) == 3)

    assert started == ["occupy", "urgent", "ordinary"]


async def test_a_limit_that_was_lowered_long_ago_while_no_worker_ran_holds(
    app: Mainspring, connection: psycopg.Connection
):
    running: Counter[str] = Counter()
    most = 0

    @app.job(concurrency=10, queue="late")
    async def work() -> None:
        nonlocal most
        running["all"] += 1
        most = max(most, running["all"])
        await asyncio.sleep(0.005)
        running["all"] -= 1

    await app.aregister_definitions()
    await app.aenqueue_many(work, [{}] * 10)
    async with Mainspring(app.database.url) as other, working(other) as worker:
        passes = worker.parts.maintenance.grants.loop.passes
        await await_until(lambda: worker.parts.maintenance.grants.loop.passes > passes + 1)
    connection.execute(LOWER)

    async with working(app):
        await await_until(lambda: live(connection, "late") == 0, 5, "all jobs are done")

    assert most == 1
