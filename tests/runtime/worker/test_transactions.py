"""What a handler does through `ctx.transaction()` happens exactly once, whoever dies when."""

import random
from functools import partial

import psycopg
import pytest

from mainspring import Context, Fail, JobState, Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until
from tests.support.workers import ended, working


def effects(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from effects").fetchone()
    return row[0] if row else 0


def are_effects(connection: psycopg.Connection, count: int) -> bool:
    return effects(connection) >= count


@pytest.mark.parametrize(
    ("job", "count", "kills"),
    [
        (apps.add_effect, 300, 4),
        pytest.param(apps.add_effect_in_thread, 200, 3, marks=pytest.mark.soak),
        (apps.add_effect_in_process, 60, 2),
    ],
)
def test_every_effect_happens_once_under_random_kills(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    job,
    count: int,
    kills: int,
):
    job_ids = shared_app.enqueue_many(job, [{}] * count)
    for seen in sorted(random.Random(kills).sample(range(1, count * 3 // 4), kills)):
        worker = start_worker("--concurrency", "20", max_losses=100)
        wait_until(partial(are_effects, connection, seen), 30)
        worker.kill()

    start_worker(max_losses=100)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 30, "all jobs succeed")
    done = connection.execute("select job_id from effects order by job_id").fetchall()
    assert [row[0] for row in done] == job_ids


async def test_a_handler_that_raises_leaves_no_effect(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(apps.TABLES)

    @app.job(max_attempts=1)
    async def add_then_raise(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("insert into effects values (%s)", (ctx.job_id,))
        raise ValueError("after all")

    async with working(app):
        job = await add_then_raise.aenqueue()
        await ended(job)

    assert (effects(connection), reading.state(connection, job.id)) == (0, "dead_letter")


async def test_a_handler_that_answers_fail_leaves_no_effect(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(apps.TABLES)

    @app.job
    def add_then_fail(ctx: Context) -> Fail:
        with ctx.transaction() as transaction:
            transaction.execute("insert into effects values (%s)", (ctx.job_id,))
        return Fail("no")

    async with working(app):
        job = await add_then_fail.aenqueue()
        await ended(job)

    assert (effects(connection), reading.state(connection, job.id)) == (0, "failed")


@pytest.mark.parametrize(
    "job", [apps.add_effect_and_fail_in_process, apps.add_effect_and_answer_nonsense_in_process]
)
async def test_a_process_that_does_not_succeed_leaves_no_effect(
    shared_app: Mainspring, connection: psycopg.Connection, job
):
    async with working(shared_app):
        ending = await ended(await job.aenqueue())
        await shared_app.database.close_loop()

    assert (effects(connection), ending.state) == (0, "failed")


LEFT_BEHIND = (
    "set role pg_monitor",
    "set default_transaction_read_only = on",
    "set search_path = nowhere",
    "create temp table jobs (x integer)",
    "declare held cursor with hold for select 1",
    "select pg_advisory_lock(4711)",
    "listen mainspring",
)
SEEN = """
select current_user <> session_user, current_setting('default_transaction_read_only'),
       current_setting('search_path') = 'nowhere', to_regclass('pg_temp.jobs'),
       (select count(*) from pg_cursors where is_holdable),
       (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
       (select count(*) from pg_listening_channels())
"""
CLEAN = (False, "off", False, None, 0, 0, 0)


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "blocking"])
@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure"])
async def test_what_a_handler_sets_for_its_session_reaches_nobody_else(
    app: Mainspring, is_async: bool, fails: bool
):
    seen: list[tuple[int, object]] = []

    @app.job(max_attempts=1)
    async def leave_async(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            row = await (await transaction.execute(SEEN)).fetchone()
            seen.append((transaction.info.backend_pid, row))
            for statement in LEFT_BEHIND:
                await transaction.execute(statement)
            if fails:
                raise ValueError
            await transaction.execute("set local role none")

    @app.job(max_attempts=1)
    def leave_blocking(ctx: Context) -> None:
        with ctx.transaction() as transaction:
            seen.append((transaction.info.backend_pid, transaction.execute(SEEN).fetchone()))
            for statement in LEFT_BEHIND:
                transaction.execute(statement)
            if fails:
                raise ValueError
            transaction.execute("set local role none")

    handler = leave_async if is_async else leave_blocking
    async with working(app):
        for _ in range(2):
            job = await ended(await handler.aenqueue())
            assert job.state is (JobState.DEAD_LETTER if fails else JobState.SUCCEEDED)

    (first, before), (second, after) = seen
    assert first == second, "the connection was not lent again"
    assert (before, after) == (CLEAN, CLEAN)
