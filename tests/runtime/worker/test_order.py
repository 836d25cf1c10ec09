"""When a worker runs what: not before it is due, not after its deadline, the urgent first."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import reading
from tests.support.waiting import await_until
from tests.support.workers import ended, working


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_a_delayed_job_runs_when_it_is_due_and_not_before(app: Mainspring):
    @app.job
    async def say_when() -> None: ...

    async with working(app):
        delayed = await say_when.options(delay=timedelta(seconds=0.7)).aenqueue()
        far = await say_when.options(delay=timedelta(hours=1)).aenqueue()
        job = await ended(delayed)

    assert job.started_at is not None
    assert timedelta(0) <= job.started_at - job.scheduled_for < timedelta(seconds=3)
    assert (await far.ajob()).attempt == 0


async def test_a_job_that_could_not_start_before_its_deadline_is_canceled(app: Mainspring):
    @app.job
    async def say_when() -> None: ...

    handle = await say_when.options(deadline=in_seconds(0.2)).aenqueue()
    passed_at = time.monotonic() + 0.3
    await await_until(lambda: time.monotonic() > passed_at)

    async with working(app):
        job = await ended(handle)

    assert (job.state, job.attempt) == ("canceled", 0)
    assert job.last_error == "its deadline passed before it could start"


async def test_a_job_that_started_before_its_deadline_may_end_after_it(app: Mainspring):
    deadline = in_seconds(1.5)

    @app.job
    async def outlive_the_deadline() -> None:
        await await_until(lambda: datetime.now(UTC) > deadline)

    async with working(app):
        job = await ended(await outlive_the_deadline.options(deadline=deadline).aenqueue())

    assert job.state == "succeeded"


async def test_the_lower_priority_number_runs_first_and_equals_in_order(app: Mainspring):
    ran: list[int] = []

    @app.job
    async def run(number: int) -> None:
        ran.append(number)

    for number, priority in enumerate([500, 100, 0, 100, 0]):
        await run.options(priority=priority).aenqueue(number=number)
    async with working(app, concurrency=1, prefetch=0):
        await await_until(lambda: len(ran) == 5)

    assert ran == [2, 4, 1, 3, 0]


async def test_an_urgent_job_overtakes_what_is_already_queued(app: Mainspring):
    ran: list[str] = []

    @app.job
    async def run(name: str) -> None:
        ran.append(name)
        await asyncio.sleep(0.05)

    async with working(app, concurrency=1, prefetch=0):
        await app.aenqueue_many(run, [{"name": "patient"}] * 50)
        await await_until(lambda: ran)
        urgent = await run.options(priority=0).aenqueue(name="urgent")
        await ended(urgent)

    assert ran.index("urgent") < 45


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_jobs_run_at_once_than_allowed(
    app: Mainspring, connection: psycopg.Connection, concurrency: int
):
    lock, running, most = threading.Lock(), 0, 0

    def enter(change: int) -> None:
        nonlocal running, most
        with lock:
            running += change
            most = max(most, running)

    @app.job
    async def run() -> None:
        enter(1)
        await asyncio.sleep(0.02)
        enter(-1)

    @app.job
    def run_in_thread() -> None:
        enter(1)
        time.sleep(0.02)
        enter(-1)

    for job in (run, run_in_thread):
        await app.aenqueue_many(job, [{}] * 20)
    async with working(app, concurrency=concurrency):
        await await_until(lambda: reading.are_all(connection, "succeeded"))

    assert most == concurrency


async def test_jobs_that_wait_run_side_by_side(app: Mainspring, connection: psycopg.Connection):
    all_here = asyncio.Barrier(100)

    @app.job
    async def meet() -> None:
        await all_here.wait()

    await app.aenqueue_many(meet, [{}] * 100)
    async with working(app, concurrency=100):
        await await_until(lambda: reading.are_all(connection, "succeeded"))


async def test_quick_jobs_are_not_held_up_by_slow_ones_claimed_before(
    app: Mainspring, connection: psycopg.Connection
):
    may_end = asyncio.Event()

    @app.job
    async def be_slow() -> None:
        await may_end.wait()

    @app.job
    async def be_quick() -> None: ...

    async with working(app, concurrency=2) as _, working(app, concurrency=2):
        await app.aenqueue_many(be_quick, [{}] * 500)
        await app.aenqueue_many(be_slow, [{}] * 3)
        last = await be_quick.aenqueue()
        assert (await ended(last)).state == "succeeded"
        may_end.set()
        await await_until(lambda: reading.are_all(connection, "succeeded"))
