"""Tenants take turns: whoever comes while others have much to do is not made to wait for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest

from mainspring import Mainspring
from tests.support.waiting import await_until
from tests.support.workers import working

MANY = 6000
BOUND = 400
# So that a message which is late, on a machine with much to do, does not decide a test.
JOB_SECONDS = 0.0005


@pytest.fixture
async def ran(app: Mainspring) -> list[str]:
    """The names that jobs were given, in the order they started."""
    ran: list[str] = []

    @app.job
    async def run(name: str) -> None:
        ran.append(name)
        time.sleep(JOB_SECONDS)  # noqa: ASYNC251 - one after the other, whatever the concurrency

    for tenant_id in ("acme", "bell"):
        await app.tenants.acreate(tenant_id)
    return ran


async def enqueue(app: Mainspring, tenant_id: str, count: int) -> None:
    """Jobs that are named for their tenant."""
    await app.aenqueue_many("run", [{"name": tenant_id}] * count, tenant_id=tenant_id)


def are_busy(connection: psycopg.Connection, workers: int = 1) -> bool:
    row = connection.execute("select count(*) from mainspring.workers where not wants_wake")
    return row.fetchone() == (workers,)


@asynccontextmanager
async def busy_workers(
    app: Mainspring, connection: psycopg.Connection, count: int = 1
) -> AsyncIterator[None]:
    """Workers that have been busy for so long that nobody notifies them any more."""
    async with AsyncExitStack() as running:
        for _ in range(count):
            await running.enter_async_context(working(app))
        await await_until(lambda: are_busy(connection, count), what="all workers are busy")
        yield


def started_between(ran: list[str], since: int, until: Callable[[str], bool]) -> int:
    """How many of acme's started after `since` before the last of the others."""
    last = max(place for place, name in enumerate(ran) if until(name))
    return ran[since:last].count("acme")


async def test_a_newcomers_last_job_starts_before_400_more_of_a_large_backlog(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    await enqueue(app, "acme", MANY)
    async with busy_workers(app, connection):
        await enqueue(app, "bell", 100)
        since = len(ran)
        await await_until(lambda: ran.count("bell") == 100)

        assert started_between(ran, since, lambda name: name == "bell") <= BOUND
        assert len(ran) < MANY


async def test_a_worker_of_small_jobs_reads_notifications_every_hundred_of_them(app: Mainspring):
    ran = 0
    seen: list[int] = []

    @app.job
    async def run() -> None:
        nonlocal ran
        ran += 1

    async def look() -> None:
        """Once in every iteration of the event loop, as whoever reads notifications."""
        while True:
            seen.append(ran)
            await asyncio.sleep(0)

    await app.aregister_definitions()
    await app.aenqueue_many(run, [{}] * 3000)
    looking = asyncio.create_task(look())
    async with working(app):
        await await_until(lambda: ran == 3000)
    looking.cancel()

    assert max(later - before for before, later in pairwise(seen)) <= 100


async def test_two_workers_are_fair_each(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    await enqueue(app, "acme", 2 * MANY)
    async with busy_workers(app, connection, 2):
        await enqueue(app, "bell", 100)
        since = len(ran)
        await await_until(lambda: ran.count("bell") == 100)

        assert started_between(ran, since, lambda name: name == "bell") <= 2 * BOUND


async def test_an_urgent_job_overtakes_what_was_claimed_before_it(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    await enqueue(app, "acme", MANY)
    async with busy_workers(app, connection):
        await app.aenqueue("run", {"name": "urgent"}, tenant_id="acme", priority=0)
        since = len(ran)
        await await_until(lambda: "urgent" in ran)

        assert started_between(ran, since, lambda name: name == "urgent") <= BOUND


async def test_what_becomes_ready_by_itself_is_found_within_seconds(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    await enqueue(app, "acme", 3 * MANY)
    async with busy_workers(app, connection):
        delay = timedelta(seconds=0.3)
        await app.aenqueue("run", {"name": "bell"}, tenant_id="bell", delay=delay)
        await await_until(lambda: "bell" in ran)

        assert len(ran) < 3 * MANY


async def test_tenants_get_jobs_in_proportion_to_their_weight(app: Mainspring, ran: list[str]):
    await app.tenants.aupdate("bell", weight=3)
    for tenant_id in ("acme", "bell"):
        await enqueue(app, tenant_id, 100)
    async with working(app, concurrency=1, prefetch=0):
        await await_until(lambda: len(ran) >= 80)

    assert ran[:80].count("bell") == 60


async def test_a_change_of_weight_is_heard_of_by_a_worker_that_runs(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    for tenant_id in ("acme", "bell"):
        await enqueue(app, tenant_id, 2 * MANY)
    async with busy_workers(app, connection):
        await app.tenants.aupdate("bell", weight=9)

        def is_heard() -> bool:
            return len(ran) > 1000 and ran[-1000:].count("bell") in range(880, 920)

        await await_until(is_heard, what="bell gets nine of ten")


async def test_with_more_tenants_than_places_each_gets_its_turn(app: Mainspring, ran: list[str]):
    names = [f"tenant{number}" for number in range(20)]
    for name in names:
        await app.tenants.acreate(name)
        await enqueue(app, name, 5)
    async with working(app, concurrency=3, prefetch=0):
        await await_until(lambda: len(ran) == 100)

    for turn in range(5):
        assert sorted(ran[turn * 20 : turn * 20 + 20]) == sorted(names)


async def test_a_tenant_alone_gets_everything(app: Mainspring, ran: list[str]):
    await enqueue(app, "bell", 5)
    await enqueue(app, "acme", 500)
    async with working(app):
        await await_until(lambda: len(ran) == 505)


async def test_jobs_of_one_tenant_start_in_order_beside_those_of_others(app: Mainspring):
    started: list[tuple[str, int]] = []

    @app.job
    async def note(tenant: str, number: int) -> None:
        started.append((tenant, number))

    for tenant_id in ("acme", "bell"):
        await app.tenants.acreate(tenant_id)
        payloads = [{"tenant": tenant_id, "number": number} for number in range(500)]
        await app.aenqueue_many(note, payloads, tenant_id=tenant_id)
    async with working(app, concurrency=1):
        await await_until(lambda: len(started) == 1000)

    for tenant_id in ("acme", "bell"):
        assert [n for tenant, n in started if tenant == tenant_id] == list(range(500))
    assert abs([tenant for tenant, _ in started[:100]].count("acme") - 50) <= 1


@pytest.mark.parametrize(
    "message",
    ["lane:", "lane:[[[", 'lane:["default", 100, "nobody", 1, 1]', "lane:" + "[" * 7000, "x:y"],
)
async def test_a_message_that_anyone_may_send_does_no_harm(
    app: Mainspring, connection: psycopg.Connection, ran: list[str], message: str
):
    async with working(app):
        connection.execute("select pg_notify('mainspring', %s)", (message,))
        await enqueue(app, "acme", 1)
        await await_until(lambda: ran == ["acme"])


async def test_jobs_that_step_aside_are_handed_back_when_the_worker_stops(
    app: Mainspring, connection: psycopg.Connection, ran: list[str]
):
    await enqueue(app, "acme", MANY)
    async with busy_workers(app, connection):
        await enqueue(app, "bell", 100)
        await asyncio.sleep(0)

    counts = connection.execute(
        "select count(*) filter (where state = 'running'), count(*) from mainspring.job_status"
    ).fetchone()
    assert counts == (0, MANY + 100)
