"""What a handler does through `ctx.transaction()` happens exactly once, whoever dies when."""

import random
from functools import partial

import psycopg
import pytest

from mainspring import Context, Fail, Mainspring
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
        (apps.add_effect_in_thread, 200, 3),
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
