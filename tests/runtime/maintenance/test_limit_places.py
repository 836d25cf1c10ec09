"""Places of limits are held by what runs, and by nothing that only could."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest

from mainspring import Backoff, Mainspring
from mainspring.domain.limits import LimitKey
from mainspring.runtime.worker.worker import Worker
from mainspring.settings import load
from mainspring.store import limits, workers
from mainspring.store.workers import WorkerFacts
from tests.support.waiting import await_until
from tests.support.workers import working

OTHER = WorkerFacts("other", "host", 1, "identity", ("default",), 200, "test")
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


async def look_for_places(worker: Worker) -> None:
    """Wait until the worker has looked twice for jobs that can go."""
    grants = worker.parts.maintenance.grants
    grants.limits_changed()
    passes = grants.loop.passes
    await await_until(lambda: grants.loop.passes > passes + 1)


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
    started = 0
    gate = asyncio.Event()

    @app.job(concurrency=10, queue="late")
    async def work() -> None:
        nonlocal started
        started += 1
        await gate.wait()

    await app.aregister_definitions()
    await app.aenqueue_many(work, [{}] * 10)
    async with Mainspring(app.database.url) as other, working(other) as worker:
        await look_for_places(worker)
    connection.execute(LOWER)

    async with working(app) as worker:
        await await_until(lambda: started)
        await look_for_places(worker)
        assert started == 1
        gate.set()
        await await_until(lambda: live(connection, "late") == 0, 5, "all jobs are done")


@asynccontextmanager
async def far_worker(app: Mainspring) -> AsyncIterator[None]:
    """A worker of another queue only."""
    worker = Worker(
        app.database.url,
        app.handlers,
        queues=("far",),
        settings=load(database_url=app.database.url, drain_seconds=5),
        enqueuer=app,
        version="test",
    )
    running = asyncio.create_task(worker.run())
    await worker.started.wait()
    yield
    worker.stop()
    await running


async def test_workers_of_different_queues_take_turns_in_a_limit_they_share(
    app: Mainspring, connection: psycopg.Connection
):
    started: list[str] = []
    gate = asyncio.Event()
    await app.limits.aset("provider", concurrency=1)

    @app.job(limit="provider")
    async def work(name: str) -> None:
        started.append(name)
        await gate.wait()

    await app.aregister_definitions()
    await app.aenqueue_many(work, [{"name": "near"}] * 8000)
    await app.aenqueue_many(work, [{"name": "far"}] * 10, queue="far")

    async with working(app), far_worker(app):
        gate.set()
        await await_until(lambda: started.count("far") == 10, 30, "the other queue is served")

    assert started.count("near") < 8000


@pytest.mark.parametrize("concurrency", [1, 50])
async def test_a_backlog_does_not_keep_jobs_of_a_limit_from_their_share(
    app: Mainspring, concurrency: int
):
    started: list[str] = []
    gate = asyncio.Event()

    @app.job
    async def free() -> None:
        started.append("free")
        await gate.wait()

    @app.job(concurrency=100)
    async def limited() -> None:
        started.append("limited")

    await app.aregister_definitions()
    await app.tenants.acreate("acme")
    await app.aenqueue_many(free, [{}] * 1500)
    await app.aenqueue_many(limited, [{}] * 100, tenant_id="acme")

    async with working(app, concurrency=concurrency) as worker:
        await await_until(
            lambda: len(started) == concurrency and worker.parts.grants.is_due(has_backlog=True)
        )
        gate.set()
        await await_until(lambda: started.count("limited") == 100, 10, "all limited jobs start")

    assert concurrency + 20 < started.count("free") < 1000


async def test_jobs_of_a_limit_and_others_start_by_priority(
    app: Mainspring, connection: psycopg.Connection
):
    started: list[int] = []
    gate = asyncio.Event()

    @app.job
    async def free(priority: int) -> None:
        started.append(priority)
        await gate.wait()

    @app.job(concurrency=10)
    async def limited(priority: int) -> None:
        started.append(priority)

    waiting = ((300, limited), (200, free), (100, limited), (50, free), (10, limited))
    async with working(app, concurrency=1, prefetch=0) as worker:
        await app.aenqueue("free", {"priority": 0}, priority=0)
        await await_until(lambda: started == [0])
        for priority, job in waiting:
            await app.aenqueue_many(job, [{"priority": priority}] * 20, priority=priority)
        await await_until(lambda: worker.parts.grants.is_due(has_backlog=True))
        gate.set()
        await await_until(lambda: len(started) == 101, 10, "all jobs start")

    # A claim finds that a lane has no more only when it asks, and then takes what is next.
    turned = sum(later < before for before, later in pairwise(started))
    assert turned <= 4


async def test_a_retried_job_of_a_limit_waits_for_its_place_again(app: Mainspring):
    attempts = Counter[int]()
    gate = asyncio.Event()

    @app.job(concurrency=1, max_attempts=2, backoff=Backoff(timedelta(0)))
    async def work(number: int) -> None:
        attempts[number] += 1
        if attempts[number] == 1:
            raise ValueError("once more")
        await gate.wait()

    async with working(app) as worker:
        await app.aenqueue_many(work, [{"number": n} for n in range(5)])
        await await_until(lambda: 2 in attempts.values(), 10, "one is tried again")
        tried = attempts.total()
        await look_for_places(worker)
        assert attempts.total() == tried, "the others wait for its place"
        gate.set()
        await await_until(lambda: attempts.total() == 10, 10, "each is tried twice")
        await await_until(lambda: not worker.parts.runners.running)

    assert set(attempts.values()) == {2}


async def test_a_key_with_a_free_place_does_not_wait_for_others_that_have_none(
    app: Mainspring, aconnection: psycopg.AsyncConnection
):
    done = asyncio.Event()

    @app.job(key_concurrency=1, limit_by="key")
    async def keyed(key: str) -> None:
        done.set()

    await app.aregister_definitions()
    full = [f"a{number:03}" for number in range(200)]
    await app.aenqueue_many("keyed", [{"key": key} for key in full * 2])
    other = await workers.register(aconnection, OTHER, timedelta(minutes=1))
    keys = [LimitKey("keyed", key, "default") for key in full]
    await limits.claim(aconnection, keys, worker_id=other, queues=["default"], limit=200)
    await app.aenqueue("keyed", {"key": "free"})

    async with working(app, concurrency=2, poll_seconds=60):
        await asyncio.wait_for(done.wait(), 5)
