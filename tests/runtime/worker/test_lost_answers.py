"""A statement was committed and its answer never came: nothing is lost, nothing is done twice."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.support import apps, reading
from tests.support.proxies import LossyProxy, lossy_proxy
from tests.support.waiting import await_until
from tests.support.workers import working

CLAIM = "update mainspring.jobs as job\n   set state = 'running'"
FINISH = "delete from mainspring.jobs as job using reported"
RETURN = "), requeued as (\n    update mainspring.jobs as job"


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[LossyProxy]:
    async with lossy_proxy(database_url) as proxy:
        yield proxy


@pytest.fixture
async def app(proxy: LossyProxy) -> AsyncIterator[Mainspring]:
    async with Mainspring(proxy.url) as app:
        yield app


@pytest.fixture
def ran(app: Mainspring) -> list[int]:
    """The ids of the jobs that ran, in that order."""
    ran: list[int] = []

    @app.job
    async def note(ctx: Context) -> int:
        ran.append(ctx.job_id)
        return ctx.job_id

    @app.job(backoff=apps.AT_ONCE)
    async def stumble(ctx: Context) -> None:
        ran.append(ctx.job_id)
        if ctx.attempt == 1:
            raise ValueError

    return ran


async def test_jobs_whose_claim_was_not_heard_of_are_claimed_again(
    app: Mainspring, proxy: LossyProxy, connection: psycopg.Connection, ran: list[int]
):
    job_ids = await app.aenqueue_many("note", [{}] * 50)
    proxy.lose_answer_to(CLAIM)

    async with working(app):
        await await_until(lambda: reading.are_all(connection, "succeeded"), 5)

    assert (proxy.lost, sorted(ran)) == (1, job_ids)
    assert [reading.job(connection, job_id)["attempt"] for job_id in job_ids] == [1] * 50


async def test_a_success_that_was_not_heard_of_is_recorded_once(
    app: Mainspring, proxy: LossyProxy, connection: psycopg.Connection, ran: list[int]
):
    job_ids = await app.aenqueue_many("note", [{}] * 50)
    proxy.lose_answer_to(FINISH)

    async with working(app):
        await await_until(lambda: reading.are_all(connection, "succeeded"), 5)

    assert (proxy.lost, sorted(ran)) == (1, job_ids)
    for job_id in job_ids:
        (attempt,) = reading.attempts(connection, job_id)
        assert (attempt["status"], attempt["late_report"]) == ("succeeded", None)


async def test_a_failure_that_was_not_heard_of_counts_once(
    app: Mainspring, proxy: LossyProxy, connection: psycopg.Connection, ran: list[int]
):
    job_id = (await app.aenqueue("stumble", {})).id
    proxy.lose_answer_to(RETURN)

    async with working(app):
        await await_until(lambda: reading.state(connection, job_id) == "succeeded", 5)

    assert (proxy.lost, ran) == (1, [job_id, job_id])
    assert reading.statuses(connection, job_id) == ["failed", "succeeded"]
    assert reading.job(connection, job_id)["failures"] == 1


async def test_an_effect_whose_commit_was_not_heard_of_happens_once(
    app: Mainspring, proxy: LossyProxy, connection: psycopg.Connection
):
    connection.execute(apps.TABLES)

    @app.job
    async def add_effect(ctx: Context) -> None:
        async with ctx.transaction() as transaction:
            await transaction.execute("insert into effects values (%s)", (ctx.job_id,))
            proxy.lose_answer_to("COMMIT")

    async with working(app):
        handle = await add_effect.aenqueue()
        await await_until(lambda: proxy.lost == 1)
        assert await handle.aresult(5) is None

    assert connection.execute("select * from effects").fetchall() == [(handle.id,)]
    assert reading.statuses(connection, handle.id) == ["succeeded"]
