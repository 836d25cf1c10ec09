"""What becomes of a job by what its handler answers, raises or returns."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring import Backoff, Cancel, Context, Fail, Mainspring, Snooze
from tests.support import apps, reading
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

MINUTE = timedelta(minutes=1)


async def test_a_result_comes_back_as_it_was(app: Mainspring):
    results = [None, 0, "text", [1, 2], {"a": {"b": None}}, "\\u0000 as text"]

    @app.job
    async def answer(number: int) -> object:
        return results[number]

    async with working(app):
        handles = [await answer.aenqueue(number=number) for number in range(len(results))]
        assert [await handle.aresult(5) for handle in handles] == results


async def test_snooze_puts_it_off_without_counting_a_failure(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def snooze() -> Snooze:
        return Snooze(MINUTE)

    async with working(app):
        handle = await snooze.aenqueue()
        await await_until(lambda: reading.statuses(connection, handle.id) == ["snoozed"])

    job = await handle.ajob()
    assert (job.state, job.waits_for, job.failures) == ("queued", "time", 0)
    assert timedelta(0) < datetime.now(UTC) + MINUTE - job.scheduled_for < timedelta(seconds=10)


async def test_snooze_may_last_no_time_at_all(app: Mainspring):
    @app.job(max_attempts=1)
    async def snooze_twice(ctx: Context) -> Snooze | int:
        return Snooze(timedelta(0)) if ctx.attempt < 3 else ctx.attempt

    async with working(app, poll_seconds=60):
        assert await (await snooze_twice.aenqueue()).aresult(5) == 3


async def test_a_snooze_beyond_the_calendar_fails_and_the_worker_goes_on(app: Mainspring):
    @app.job(max_attempts=1)
    async def snooze() -> Snooze:
        return Snooze(timedelta.max)

    @app.job
    async def answer() -> int:
        return 42

    async with working(app):
        job = await ended(await snooze.aenqueue(), 5)
        assert await (await answer.aenqueue()).aresult(5) == 42

    assert job.state == "dead_letter"


async def test_cancel_ends_it_as_canceled(app: Mainspring, connection: psycopg.Connection):
    @app.job
    async def give_up() -> Cancel:
        return Cancel("nothing to do")

    async with working(app):
        job = await ended(await give_up.aenqueue())

    assert (job.state, job.last_error, job.failures) == ("canceled", "nothing to do", 0)
    assert reading.statuses(connection, job.id) == ["canceled"]


async def test_fail_ends_it_though_attempts_are_left(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job(max_attempts=5)
    def refuse() -> Fail:
        return Fail("no such user")

    async with working(app):
        job = await ended(await refuse.aenqueue())

    assert (job.state, job.last_error, job.failures) == ("failed", "no such user", 1)
    assert reading.statuses(connection, job.id) == ["failed"]


async def test_an_exception_is_retried_after_the_backoff(app: Mainspring):
    @app.job(backoff=Backoff(MINUTE, jitter=timedelta(0)))
    async def stumble() -> None:
        raise ValueError("not today")

    async with working(app):
        job = await retried(await stumble.aenqueue())

    assert job.waits_for == "time"
    assert timedelta(0) < datetime.now(UTC) + MINUTE - job.scheduled_for < timedelta(seconds=10)
    assert job.last_error is not None
    assert job.last_error.startswith("ValueError: not today\n")
    assert 'raise ValueError("not today")' in job.last_error


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_it_is_a_dead_letter_when_its_attempts_are_used_up(
    app: Mainspring, connection: psycopg.Connection, max_attempts: int
):
    @app.job(max_attempts=max_attempts, backoff=apps.AT_ONCE)
    async def stumble() -> None:
        raise ValueError

    async with working(app):
        job = await ended(await stumble.aenqueue())

    assert (job.state, job.failures) == ("dead_letter", max_attempts)
    assert reading.statuses(connection, job.id) == ["failed"] * max_attempts


async def test_a_retry_that_succeeds_in_time_succeeds(app: Mainspring):
    @app.job(max_attempts=3, backoff=Backoff(timedelta(seconds=0.05), jitter=timedelta(0)))
    async def stumble_twice(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError
        return ctx.attempt

    async with working(app):
        assert await (await stumble_twice.aenqueue()).aresult(5) == 3


async def test_a_handler_that_cancels_itself_has_failed(app: Mainspring):
    @app.job(max_attempts=1)
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    async with working(app):
        job = await ended(await cancel_itself.aenqueue())

    assert job.state == "dead_letter"
    assert str(job.last_error).startswith("asyncio.exceptions.CancelledError")


async def test_leaving_the_program_is_a_failure_like_any_other(app: Mainspring):
    @app.job(max_attempts=1)
    async def leave() -> None:
        raise SystemExit(3)

    @app.job
    async def answer() -> int:
        return 42

    async with working(app):
        job = await ended(await leave.aenqueue())
        assert await (await answer.aenqueue()).aresult(5) == 42

    assert (job.state, job.last_error) == ("dead_letter", job.last_error)
    assert str(job.last_error).startswith("SystemExit: 3")


UNSTORABLE = {
    "the handler returned a object that is not JSON": object(),
    "the handler returned a dict that is not JSON": {1: "a key that is no text"},
    "the handler returned a str that is not JSON": "\ud800",
    "the result contains a NUL byte": "a\x00b",
    "the result contains a NUL byte, ": {"\x00": 1},
}


async def test_a_result_that_cannot_be_stored_fails_with_a_reason(app: Mainspring):
    @app.job
    async def answer(problem: str) -> object:
        return UNSTORABLE[problem]

    async with working(app):
        for problem in UNSTORABLE:
            job = await ended(await answer.aenqueue(problem=problem))
            assert job.state == "failed"
            assert str(job.last_error).startswith(problem)


async def test_a_result_that_cannot_be_stored_takes_the_transaction_with_it(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(apps.TABLES)

    @app.job
    def add_and_answer(ctx: Context) -> object:
        with ctx.transaction() as transaction:
            transaction.execute("insert into effects values (%s)", (ctx.job_id,))
        return object()

    async with working(app):
        job = await ended(await add_and_answer.aenqueue(), 4)

    assert (job.state, job.failures) == ("failed", 1)
    assert connection.execute("select * from effects").fetchall() == []


async def test_an_error_text_with_anything_in_it_can_be_stored(app: Mainspring):
    @app.job(max_attempts=1)
    async def stumble() -> None:
        raise ValueError("a\x00b \ud800 " + "x" * 100_000)

    async with working(app):
        job = await ended(await stumble.aenqueue())

    assert job.state == "dead_letter"
    assert str(job.last_error).startswith("ValueError: a\ufffdb ? xxx")
    assert len(str(job.last_error)) < 25_000


async def test_a_payload_that_does_not_fit_the_handler_is_a_failure(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def greet(name: str) -> str:
        return name

    async with working(app):
        query = """select mainspring.enqueue('greet', '{"nome": "Ada"}')"""
        ((job_id,),) = connection.execute(query).fetchall()
        await await_until(lambda: reading.state(connection, job_id) == "failed")

    assert "'nome' was unexpected" in reading.job(connection, job_id)["last_error"]


async def test_a_definition_nobody_knows_waits_for_a_worker_that_does(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    @app.job(key="add_up")
    async def stand_in() -> None: ...

    job_id = (await app.aenqueue("add_up", {})).id
    del app.handlers["add_up"]

    @app.job
    async def answer() -> int:
        return 42

    async with working(app):
        await await_until(lambda: reading.job(connection, job_id)["waits_for"] == "handler")
    async with Mainspring(database_url) as knowing:
        knowing.job(key="add_up")(answer.function)
        async with working(knowing):
            await await_until(lambda: reading.state(connection, job_id) == "succeeded", 6)

    assert reading.job(connection, job_id)["result"] == 42
    assert reading.statuses(connection, job_id) == ["succeeded"]


async def test_a_definition_nobody_knows_fails_where_so_chosen(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job(key="add_up")
    async def stand_in() -> None: ...

    handle = await app.aenqueue("add_up", {})
    del app.handlers["add_up"]

    @app.job
    async def answer() -> int:
        return 42

    async with working(app, unknown_handler="fail"):
        job = await ended(handle)

    assert job.state == "failed"
    assert str(job.last_error).startswith("no handler for 'add_up' in this worker")
