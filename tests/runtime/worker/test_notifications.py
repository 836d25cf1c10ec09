"""An idle worker that hardly polls still hears of work at once, and of every kind of it."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from mainspring import Backoff, Context, Mainspring
from tests.support import events, reading
from tests.support.databases import role
from tests.support.processes import StartWorker
from tests.support.schedules import scheduling
from tests.support.waiting import await_until
from tests.support.workers import working

SOON = 3


@pytest.fixture
def ran(app: Mainspring) -> list[int]:
    """The ids of the jobs that ran, in that order."""
    ran: list[int] = []

    @app.job
    async def note(ctx: Context) -> None:
        ran.append(ctx.job_id)

    @app.job(backoff=Backoff(timedelta(seconds=0.1), jitter=timedelta(0)))
    async def stumble(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError
        ran.append(ctx.job_id)

    @app.job(backoff=Backoff(timedelta(seconds=1.5), jitter=timedelta(0)))
    async def stumble_for_long(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError
        ran.append(ctx.job_id)

    return ran


async def enqueue(app: Mainspring, key: str, **options: object) -> int:
    return (await app.aenqueue(key, {}, **options)).id


async def settle(connection: psycopg.Connection) -> None:
    await await_until(lambda: reading.are_idle(connection), what="the worker is idle")


async def test_it_hears_of_an_enqueue_in_python(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        job_id = await enqueue(app, "note")
        await await_until(lambda: ran == [job_id], SOON)


async def test_it_hears_of_a_bulk_enqueue(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        job_ids = await app.aenqueue_many("note", [{}] * 10)
        await await_until(lambda: sorted(ran) == job_ids, SOON)


@pytest.mark.parametrize("call", ["enqueue('note')", "enqueue_many('note', array[jsonb '{}'])"])
async def test_it_hears_of_an_enqueue_in_sql(
    app: Mainspring, connection: psycopg.Connection, ran: list[int], call: str
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        ((job_id,),) = connection.execute(f"select mainspring.{call}").fetchall()
        await await_until(lambda: ran == [job_id], SOON)


async def test_it_hears_of_a_commit_not_of_the_enqueue_before_it(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        with connection.transaction():
            connection.execute("select mainspring.enqueue('note')")
            await asyncio.to_thread(connection.execute, "select pg_sleep(0.3)")
            assert not ran
        await await_until(lambda: ran, SOON)


async def test_it_hears_of_a_delayed_job_in_time(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        job_id = await enqueue(app, "note", delay=timedelta(seconds=0.5))
        await await_until(lambda: ran == [job_id], SOON)


async def test_it_retries_in_time(app: Mainspring, connection: psycopg.Connection, ran: list[int]):
    async with working(app, poll_seconds=60):
        job_id = await enqueue(app, "stumble")
        await await_until(lambda: ran == [job_id], SOON)


async def test_it_hears_of_a_retry_by_hand(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    job_id = await enqueue(app, "note")
    await app.jobs.acancel(job_id)
    async with working(app, poll_seconds=60):
        await settle(connection)
        await app.jobs.aretry(job_id)
        await await_until(lambda: ran == [job_id], SOON)


async def test_it_hears_of_a_cancel(app: Mainspring, connection: psycopg.Connection):
    @app.job
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async with working(app, poll_seconds=60):
        job_id = await enqueue(app, "wait_for_ever")
        await await_until(lambda: reading.state(connection, job_id) == "running")
        await settle(connection)
        await app.jobs.acancel(job_id)
        await await_until(lambda: reading.state(connection, job_id) == "canceled", SOON)


async def test_it_hears_again_after_its_ear_was_cut_off(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, poll_seconds=60):
        await settle(connection)
        connection.execute(CUT_OFF, {"name": "mainspring listen"})
        first = await enqueue(app, "note")
        await await_until(lambda: ran == [first], 5)
        await settle(connection)
        second = await enqueue(app, "note")
        await await_until(lambda: ran == [first, second], SOON)


@pytest.mark.parametrize("name", ["claim", "finish", "chores"])
async def test_it_goes_on_after_any_of_its_connections_was_cut_off(
    app: Mainspring, connection: psycopg.Connection, ran: list[int], name: str
):
    async with working(app, poll_seconds=60):
        first = await enqueue(app, "stumble")
        await await_until(lambda: ran == [first])
        connection.execute(CUT_OFF, {"name": f"mainspring {name}"})
        second = await enqueue(app, "stumble")
        await await_until(lambda: ran == [first, second], 5)


CUT_OFF = (
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where application_name = %(name)s and datname = current_database()"
)


async def test_through_a_pooler_it_polls(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    async with working(app, use_pooler=True, poll_seconds=0.1):
        job_ids = [await enqueue(app, "note"), await enqueue(app, "stumble")]
        job_ids.append(await enqueue(app, "note", delay=timedelta(seconds=0.2)))
        await await_until(lambda: sorted(ran) == job_ids, 5)
        names = "select application_name from pg_stat_activity where datname = current_database()"
        assert ("mainspring listen",) not in connection.execute(names).fetchall()


async def test_it_hears_of_a_retry_that_the_worker_before_left_behind(
    app: Mainspring, connection: psycopg.Connection, ran: list[int]
):
    is_free = asyncio.Event()

    @app.job
    async def keep_busy() -> None:
        await is_free.wait()

    async with working(app, poll_seconds=60, concurrency=1):
        busy = await enqueue(app, "keep_busy")
        await await_until(lambda: reading.state(connection, busy) == "running")
        async with working(app, poll_seconds=60):
            job_id = await enqueue(app, "stumble_for_long")
            await await_until(lambda: reading.statuses(connection, job_id) == ["failed"])
            is_free.set()
        await await_until(lambda: ran == [job_id], 5)


# What anybody may send

FORGED = (
    "l:boo",
    "limit:boo",
    "limit:[1,2,3]",
    'limit:["a","b"]',
    r'limit:["a","b","\u0000"]',
    r'limit:["a","b","\ud800"]',
    "limit:" + "[" * 3000,
    "lane:boo",
    "lane:" + "[" * 3000,
    r'lane:["default",100,"\u0000",1,1]',
    "cancel:boo",
    "ready:",
    "schedule:boo",
    "event:boo",
    "boo",
    ":",
)


def send_forged(database_url: str, role: str) -> None:
    with psycopg.connect(database_url, user=role, password=role, autocommit=True) as foreign:
        for message in FORGED:
            foreign.execute("select pg_notify('mainspring', %s)", (message,))


def test_a_worker_ignores_what_a_foreign_role_sends_and_logs_it_once(
    start_worker: StartWorker,
    shared_app: Mainspring,
    connection: psycopg.Connection,
    database_url: str,
):
    worker = start_worker()
    worker.started(connection)
    with role(database_url) as foreign:
        for _ in range(2):
            send_forged(database_url, foreign)
            shared_app.enqueue("do_nothing", {"number": 1}).result(timeout=10)
            assert worker.is_alive, worker.log

    assert worker.log.count("notification_ignored") == 1
    assert worker.stop() == 0


async def test_a_scheduler_ignores_what_a_foreign_role_sends(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    events.insert_trigger(connection)
    with role(database_url) as foreign:
        async with scheduling(app):
            await await_until(lambda: events.is_resting(connection))
            send_forged(database_url, foreign)
            await app.aemit("provider.changed")
            await await_until(lambda: events.handled(connection) == 1)
