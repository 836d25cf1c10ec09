"""Reports that the database refuses: none holds up the others, and each has its reason."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mainspring import Context, JobHandle, JobState, Mainspring
from tests.support import reading
from tests.support.databases import change_schema
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

ALWAYS, IF_SUCCEEDED = "true", "new.state = 'succeeded'"


@pytest.fixture
def numbers(app: Mainspring) -> Mainspring:
    @app.job
    async def answer(n: int) -> int:
        return n

    @app.job(max_attempts=5)
    async def bad() -> None:
        return None

    return app


def refuse(
    connection: psycopg.Connection,
    job_id: int,
    *,
    when: str,
    table: str = "jobs_history",
    code: str = "check_violation",
    message: str = "refused",
) -> None:
    """Let the database refuse rows of the job."""
    connection.execute(
        "create function public.refuse() returns trigger language plpgsql as $$ begin"
        f" raise '{message}' using errcode = '{code}'; end $$"
    )
    connection.execute(
        sql.SQL(
            "create trigger refuse before insert on mainspring.{} for each row"
            " when (new.job_id = {} and {}) execute function public.refuse()"
        ).format(sql.Identifier(table), job_id, sql.SQL(when))
    )


async def with_a_bad_one_among_many(
    app: Mainspring, connection: psycopg.Connection, **refusal: Any
) -> tuple[JobHandle, list[int]]:
    """The bad job and the ids of the others, all claimed and reported together."""
    before = app.enqueue_many("answer", [{"n": n} for n in range(100)])
    bad = await app.aenqueue("bad", {})
    after = app.enqueue_many("answer", [{"n": n} for n in range(100)])
    refuse(connection, bad.id, **refusal)
    return bad, [*before, *after]


async def test_a_job_whose_success_is_refused_fails_and_the_others_succeed(
    numbers: Mainspring, connection: psycopg.Connection
):
    await numbers.aregister_definitions()
    bad, others = await with_a_bad_one_among_many(numbers, connection, when=IF_SUCCEEDED)

    async with working(numbers):
        job = await ended(bad)
        await await_until(lambda: reading.states(connection).get("succeeded") == len(others))

    assert (job.state, job.last_error) == (
        JobState.FAILED,
        "the result could not be stored: refused",
    )
    assert reading.statuses(connection, bad.id) == ["failed"]


@pytest.mark.parametrize("code", ["54000", "P0001", "42501", "XX000"])
async def test_a_job_that_cannot_end_is_put_off_with_the_reason_and_the_others_succeed(
    numbers: Mainspring, connection: psycopg.Connection, code: str
):
    await numbers.aregister_definitions()
    bad, others = await with_a_bad_one_among_many(numbers, connection, when=ALWAYS, code=code)

    async with working(numbers) as worker:
        worker_id = worker.worker_id
        job = await retried(bad)
        await await_until(lambda: reading.states(connection).get("succeeded") == len(others))
        assert worker.worker_id == worker_id

    assert (job.waits_for, job.last_error) == ("time", "the result could not be stored: refused")


async def test_a_job_of_which_nothing_can_be_stored_is_tried_again(
    numbers: Mainspring, connection: psycopg.Connection
):
    await numbers.aregister_definitions()
    bad, others = await with_a_bad_one_among_many(
        numbers, connection, when=ALWAYS, table="attempts"
    )

    async with working(numbers):
        await await_until(lambda: reading.states(connection).get("succeeded") == len(others))
        assert reading.state(connection, bad.id) == "running"
        await change_schema(connection, "drop trigger refuse on mainspring.attempts")
        job = await retried(bad)

    assert job.last_error == "the result could not be stored: refused"


async def test_a_statement_that_is_canceled_is_no_fault_of_the_job(
    numbers: Mainspring, connection: psycopg.Connection
):
    connection.execute("create sequence public.tries")
    await numbers.aregister_definitions()
    bad = await numbers.aenqueue("bad", {})
    refuse(connection, bad.id, when="nextval('public.tries') <= 2", code="query_canceled")

    async with working(numbers):
        assert (await ended(bad)).state is JobState.SUCCEEDED


async def test_what_the_database_says_is_redacted(app: Mainspring, connection: psycopg.Connection):
    @app.job(arg_schema=of(token=MARKED))
    async def pay(token: str) -> None:
        return None

    await app.aregister_definitions()
    job = await app.aenqueue("pay", {"token": "hunter2-hunter2"})
    refuse(connection, job.id, when=IF_SUCCEEDED, message="not with hunter2-hunter2")

    async with working(app):
        error = (await ended(job)).last_error

    assert error is not None
    assert "not with" in error
    assert "hunter2" not in error


async def test_a_job_whose_row_is_locked_does_not_hold_up_the_others(
    numbers: Mainspring, database_url: str, connection: psycopg.Connection
):
    has_locked = asyncio.Event()

    @numbers.job
    async def lock(ctx: Context) -> str:
        await ctx.acheckpoint(1, connection=own)
        has_locked.set()
        return "done"

    async with (
        working(numbers, lease_seconds=5) as worker,
        await psycopg.AsyncConnection.connect(database_url) as own,
    ):
        worker_id = worker.worker_id
        locking = await numbers.aenqueue("lock", {})
        await has_locked.wait()
        others = [await numbers.aenqueue("answer", {"n": n}) for n in range(4)]
        for n, other in enumerate(others):
            assert await other.aresult(10) == n
        assert (await locking.ajob()).state is JobState.RUNNING
        await own.commit()
        assert await locking.aresult(10) == "done"
        assert worker.worker_id == worker_id
