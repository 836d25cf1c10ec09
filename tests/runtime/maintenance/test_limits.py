"""Limits with real workers: never more at once than allowed, however many workers there are."""

import asyncio
from collections import Counter
from datetime import timedelta

import psycopg

from mainspring import Backoff, Context, Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working


class Meter:
    """Counts what runs at once."""

    def __init__(self) -> None:
        self.running: Counter[object] = Counter()
        self.most: Counter[object] = Counter()
        self.gate = asyncio.Event()

    async def run(self, *keys: object) -> None:
        for key in keys:
            self.running[key] += 1
            self.most[key] = max(self.most[key], self.running[key])
        await asyncio.sleep(0.002)
        for key in keys:
            self.running[key] -= 1


async def test_no_more_run_at_once_than_the_definition_allows(app: Mainspring):
    meter = Meter()

    @app.job(concurrency=3)
    async def work(number: int) -> None:
        await meter.run("all")

    async with working(app), working(app):
        await app.aenqueue_many(work, [{"number": n} for n in range(100)])
        await await_until(lambda: _is_empty(app), 30)

    assert meter.most["all"] == 3


async def test_each_key_has_its_own_places_within_those_of_all(app: Mainspring):
    meter = Meter()

    @app.job(concurrency=5, key_concurrency=1, limit_by="user")
    async def work(user: int) -> None:
        await meter.run("all", user)

    async with working(app), working(app):
        await app.aenqueue_many(work, [{"user": n % 10} for n in range(150)])
        await await_until(lambda: _is_empty(app), 30)

    assert meter.most["all"] == 5
    assert {meter.most[user] for user in range(10)} == {1}


async def test_a_lone_limited_job_starts_at_once(app: Mainspring):
    @app.job(concurrency=1)
    async def work() -> str:
        return "done"

    async with working(app, poll_seconds=30) as worker:
        await await_until(lambda: worker.parts.maintenance.grants.loop.passes > 0)
        handle = await work.aenqueue()

        assert await handle.aresult(5) == "done"


async def test_a_failed_attempt_gives_its_place_back_while_it_waits(app: Mainspring):
    @app.job(concurrency=1, backoff=Backoff(timedelta(hours=1)))
    async def work(is_bad: bool) -> None:
        if is_bad:
            raise ValueError("no")

    async with working(app):
        bad = await work.aenqueue(is_bad=True)
        good = await work.aenqueue(is_bad=False)
        await ended(good)

    assert (await bad.ajob()).waits_for == "time"


async def test_a_lowered_limit_holds_for_what_has_not_started(app: Mainspring):
    meter = Meter()

    @app.job(concurrency=4)
    async def work() -> None:
        meter.running["all"] += 1
        meter.most["all"] = max(meter.most["all"], meter.running["all"])
        await meter.gate.wait()
        meter.running["all"] -= 1

    async with working(app) as worker:
        await app.aenqueue_many(work, [{} for _ in range(12)])
        await await_until(lambda: meter.running["all"] == 4)
        async with (await app.database.async_pool()).connection() as connection:
            await connection.execute("update mainspring.definitions set concurrency = 2")
        seen = worker.parts.maintenance.grants.loop.passes
        await await_until(lambda: worker.parts.maintenance.grants.loop.passes > seen)
        meter.gate.set()
        await await_until(lambda: meter.running["all"] <= 2)
        meter.most.clear()
        await await_until(lambda: _is_empty(app), 20)

    assert meter.most["all"] <= 2


async def test_a_rate_spaces_starts(app: Mainspring, connection: psycopg.Connection):
    starts: list[float] = []

    @app.job(rate="50/s")
    async def work(ctx: Context) -> None:
        starts.append(asyncio.get_running_loop().time())

    async with working(app), working(app):
        await app.aenqueue_many(work, [{} for _ in range(30)])
        await await_until(lambda: _is_empty(app), 20)

    # The database's clock decides, so a start may be seen a little late, and the next on time.
    assert len(starts) == 30
    assert starts[-1] - starts[0] > 29 * 0.02 - 0.1


async def test_a_burst_starts_in_a_row(app: Mainspring):
    @app.job(rate="1/hour", burst=3)
    async def work(number: int) -> None:
        """Does nothing."""

    async with working(app):
        handles = [await work.aenqueue(number=n) for n in range(5)]
        for handle in handles[:3]:
            await ended(handle)

    assert [(await handle.ajob()).waits_for for handle in handles[3:]] == ["limit", "limit"]


async def test_two_definitions_share_a_limit(app: Mainspring):
    meter = Meter()
    await app.limits.aset("provider", concurrency=2)

    @app.job(limit="provider")
    async def one() -> None:
        await meter.run("all")

    @app.job(limit="provider")
    async def other() -> None:
        await meter.run("all")

    async with working(app):
        await app.aenqueue_many(one, [{} for _ in range(30)])
        await app.aenqueue_many(other, [{} for _ in range(30)])
        await await_until(lambda: _is_empty(app), 20)

    assert meter.most["all"] == 2


async def test_unlimited_work_passes_what_waits_for_a_limit(app: Mainspring):
    @app.job(concurrency=0)
    async def never() -> None:
        """Does nothing."""

    @app.job
    async def always() -> str:
        return "done"

    async with working(app):
        await app.aenqueue_many(never, [{} for _ in range(500)])

        assert await (await always.aenqueue()).aresult(5) == "done"


async def test_a_place_is_given_back_by_a_transaction_of_the_job(app: Mainspring):
    @app.job(concurrency=1)
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("select 1")

    async with working(app, poll_seconds=30):
        handles = [await work.aenqueue() for _ in range(3)]
        for handle in handles:
            await ended(handle)


def test_the_place_of_a_killed_worker_comes_back(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    first = start_worker(lease_seconds=1)
    first.started(connection)
    jobs = [apps.hang_alone.enqueue() for _ in range(3)]
    wait_until(lambda: len(reading.notes(connection, "began")) == 1)
    first.kill()

    start_worker().started(connection)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 30, f"{len(jobs)} jobs succeed")


def test_workers_in_many_processes_keep_to_a_limit(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    for worker in [start_worker() for _ in range(3)]:
        worker.started(connection)
    shared_app.enqueue_many(apps.take_turns, [{"seconds": 0.01}] * 60)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 60)

    assert _most_at_once(connection) == 2


def _most_at_once(connection: psycopg.Connection) -> int:
    steps = connection.execute(
        "select case what when 'began' then 1 else -1 end from notes order by at, what desc"
    ).fetchall()
    running = most = 0
    for (step,) in steps:
        running += step
        most = max(most, running)
    return most


async def _is_empty(app: Mainspring) -> bool:
    return not [job for job in await app.jobs.alist(limit=1000) if not job.is_final]
