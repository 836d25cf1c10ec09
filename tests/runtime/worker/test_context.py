"""What a handler can do through its context."""

import asyncio
from contextvars import ContextVar
from typing import Any

import psycopg
import pytest

from mainspring import Context, Mainspring, Progress
from mainspring.domain.errors import InputError
from mainspring.testing import adrain
from tests.support import apps, reading
from tests.support.waiting import await_until
from tests.support.workers import ended, working

LEAK: ContextVar[str] = ContextVar("LEAK", default="nothing")

COUNTING = Progress(3, 10, "counting", {"page": 3})


async def test_it_knows_its_job(app: Mainspring):
    @app.job(queue="mail")
    async def look(ctx: Context) -> list[Any]:
        return [ctx.job_id, ctx.tenant_id, ctx.definition, ctx.queue, ctx.attempt, ctx.saved]

    @app.job
    def look_further(ctx: Context) -> list[Any]:
        return [ctx.correlation_id, list(ctx.tags), ctx.is_canceled]

    async with working(app):
        handle = await look.aenqueue()
        further = await look_further.options(correlation_id="abc", tags=["x", "y"]).aenqueue()

        assert await handle.aresult(5) == [handle.id, "default", "look", "mail", 1, None]
        assert await further.aresult(5) == ["abc", ["x", "y"], False]


async def test_progress_can_be_seen_while_it_runs(app: Mainspring):
    seen = asyncio.Event()

    @app.job
    async def advance(ctx: Context) -> None:
        ctx.progress(1, 10, "started")
        ctx.progress(3, 10, "counting", data={"page": 3})
        await seen.wait()

    async def progress() -> Progress | None:
        return (await handle.ajob()).progress

    async with working(app):
        handle = await advance.aenqueue()
        assert await await_until(progress) == COUNTING
        seen.set()
        assert (await ended(handle)).progress == COUNTING


@pytest.mark.parametrize("wrong", [("5",), (True,), (float("nan"),), (1, float("inf"))])
async def test_progress_is_a_finite_number(app: Mainspring, wrong: Any):
    @app.job
    async def advance(ctx: Context) -> None:
        ctx.progress(*wrong)

    await advance.aenqueue()

    with pytest.raises(InputError, match=r"progress: (current|total) must be a finite number"):
        await adrain(app)


async def test_the_next_attempt_starts_from_the_checkpoint(app: Mainspring):
    @app.job(backoff=apps.AT_ONCE)
    async def resume(ctx: Context) -> Any:
        if ctx.saved is None:
            await ctx.acheckpoint({"page": 7})
            raise ValueError
        return ctx.saved

    @app.job(backoff=apps.AT_ONCE)
    def resume_in_thread(ctx: Context) -> Any:
        if ctx.saved is None:
            ctx.checkpoint([1, 2])
            raise ValueError
        return ctx.saved

    async with working(app):
        assert await (await resume.aenqueue()).aresult(5) == {"page": 7}
        assert await (await resume_in_thread.aenqueue()).aresult(5) == [1, 2]


async def test_a_checkpoint_is_committed_with_the_work_it_is_about_or_not_at_all(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute("create table pages (number integer)")

    @app.job(backoff=apps.AT_ONCE)
    async def turn(ctx: Context) -> Any:
        if ctx.attempt == 3:
            return ctx.saved
        async with await psycopg.AsyncConnection.connect(app.database.url) as own:
            await own.execute("insert into pages values (%s)", (ctx.attempt,))
            await ctx.acheckpoint({"page": ctx.attempt}, connection=own)
            if ctx.attempt == 1:
                await own.commit()
            raise ValueError

    async with working(app):
        assert await (await turn.aenqueue()).aresult(5) == {"page": 1}
    assert connection.execute("select number from pages").fetchall() == [(1,)]


async def test_a_plain_function_commits_its_checkpoint_with_its_work_or_not_at_all(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute("create table pages (number integer)")

    @app.job(backoff=apps.AT_ONCE)
    def turn(ctx: Context) -> Any:
        if ctx.attempt == 3:
            return ctx.saved
        with psycopg.connect(app.database.url) as own:
            own.execute("insert into pages values (%s)", (ctx.attempt,))
            ctx.checkpoint({"page": ctx.attempt}, connection=own)
            if ctx.attempt == 1:
                own.commit()
            raise ValueError

    async with working(app):
        assert await (await turn.aenqueue()).aresult(5) == {"page": 1}
    assert connection.execute("select number from pages").fetchall() == [(1,)]


async def test_follow_ups_share_the_correlation(app: Mainspring):
    @app.job
    async def last(ctx: Context) -> str | None:
        return ctx.correlation_id

    @app.job
    def second(ctx: Context) -> int:
        return int(ctx.enqueue(last).id)

    @app.job
    async def first(ctx: Context) -> int:
        return int((await ctx.aenqueue(second)).id)

    async with working(app):
        handle = await first.aenqueue()
        second_id = await handle.aresult(5)
        await await_until(lambda: is_over(app, second_id + 1))

    assert (await app.jobs.aget(second_id + 1)).result == str(handle.id)


async def is_over(app: Mainspring, job_id: int) -> bool:
    return any(job.id == job_id and job.is_final for job in await app.jobs.alist())


@pytest.mark.parametrize("raises", [False, True])
async def test_a_follow_up_in_a_transaction_exists_only_if_it_commits(
    app: Mainspring, connection: psycopg.Connection, raises
):
    @app.job
    async def follow() -> None: ...

    @app.job(max_attempts=1)
    async def lead(ctx: Context) -> None:
        async with ctx.transaction():
            await ctx.aenqueue(follow)
        if raises:
            raise ValueError

    async with working(app):
        await ended(await lead.aenqueue())
        if not raises:
            await await_until(lambda: reading.states(connection) == {"succeeded": 2})

    assert sum(reading.states(connection).values()) == (1 if raises else 2)


async def test_a_plain_worker_gets_data_id_and_queue(app: Mainspring):
    seen: list[Any] = []

    def ingest(job_data: dict[str, Any], job_id: str, queue: Any) -> dict[str, Any]:
        seen.extend([job_data, job_id, queue.is_canceled(job_id)])
        queue.update_job(job_id, {"progress": 50, "message": "half"})
        return {"follow_up": queue.enqueue("note", {"text": "done"})}

    def note(job_data: dict[str, Any], job_id: str, queue: Any) -> str:
        return str(job_data["text"])

    app.register_worker("ingestion", ingest)
    app.register_worker("note", note)

    async with working(app):
        handle = await app.aenqueue("ingestion", {"path": "a.txt"})
        follow_up = int((await handle.aresult(5))["follow_up"])
        await await_until(lambda: is_over(app, follow_up))

    assert seen == [{"path": "a.txt"}, str(handle.id), False]
    assert (await app.jobs.aget(follow_up)).result == "done"


async def test_context_variables_do_not_leak_into_the_next_job(app: Mainspring):
    @app.job
    async def leak(number: int) -> str:
        before = LEAK.get()
        LEAK.set(f"job {number}")
        return before

    async with working(app, concurrency=1):
        handles = [await leak.aenqueue(number=number) for number in range(20)]
        assert {await handle.aresult(5) for handle in handles} == {"nothing"}


async def test_context_variables_and_transactions_together_do_not_stop_the_worker(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def leak(number: int, ctx: Context) -> None:
        async with ctx.transaction():
            LEAK.set(f"job {number}")

    async with working(app, concurrency=1, prefetch=0, poll_seconds=60):
        await app.aenqueue_many(leak, [{"number": number} for number in range(50)])
        await await_until(lambda: reading.are_all(connection, "succeeded"))


async def test_a_process_computes_and_reports_what_it_raised(
    shared_app: Mainspring, connection: psycopg.Connection
):
    async with working(shared_app):
        assert await (await apps.add_up.aenqueue(numbers=[1, 2, 3])).aresult(10) == 6
        dead = await ended(await apps.kill_own_process.aenqueue())
        assert await (await apps.add_up.aenqueue(numbers=[4, 5])).aresult(10) == 9
        await shared_app.database.close_loop()

    assert dead.state == "dead_letter"
    assert dead.last_error == (
        "the job's process was killed by SIGKILL, perhaps because memory ran out"
    )
    assert reading.statuses(connection, dead.id) == ["failed", "failed"]
