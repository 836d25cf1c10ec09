"""The testing door with jobs that wait for a limit, an approval or each other."""

from collections.abc import Iterator

import pytest

from mainspring import Context, Fail, JobState, Mainspring
from mainspring.testing import adrain, inline


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with Mainspring(database_url) as app:
        yield app


async def test_drain_runs_limited_jobs_as_places_come_free(app):
    @app.job(concurrency=1)
    async def serial(number: int) -> int:
        return number

    await app.aenqueue_many(serial, [{"number": n} for n in range(5)])

    assert (await adrain(app)).succeeded == 5


async def test_drain_runs_a_flow_from_its_first_step_to_its_last(app):
    @app.job
    async def add(ctx: Context) -> int:
        return 1 + sum(int(parent.result) for parent in await ctx.aparents())

    flow = app.flow("chain")
    last = flow.chain(flow.add(add), flow.add(add), flow.add(add))
    handle = await flow.aenqueue()

    assert (await adrain(app)).succeeded == 3
    assert (await handle.jobs[last].ajob()).result == 3


async def test_drain_cancels_what_comes_after_a_failure(app):
    @app.job
    async def fail() -> Fail:
        return Fail("no")

    @app.job
    async def after() -> None:
        """Never runs."""

    flow = app.flow("pair")
    last = flow.add(after, after=[flow.add(fail)])
    handle = await flow.aenqueue()

    summary = await adrain(app)

    assert (summary.failed, summary.total) == (1, 1)
    assert (await handle.jobs[last].ajob()).state is JobState.CANCELED


async def test_drain_leaves_what_awaits_approval(app):
    @app.job(approvals_needed=1)
    async def risky() -> None:
        """Does nothing."""

    handle = await risky.aenqueue()
    assert (await adrain(app)).total == 0

    await app.approvals.aapprove(handle.id)

    assert (await adrain(app)).succeeded == 1


async def test_a_rate_is_kept_unless_time_is_to_pass(app):
    @app.job(rate="1/hour")
    async def seldom(number: int) -> None:
        """Does nothing."""

    await app.aenqueue_many(seldom, [{"number": n} for n in range(3)])

    assert (await adrain(app)).succeeded == 1
    assert (await adrain(app, with_scheduled=True)).succeeded == 2


def test_inline_runs_a_limited_job_at_once(app):
    ran: list[int] = []

    @app.job(concurrency=1)
    def work(number: int) -> None:
        ran.append(number)

    with inline(app):
        work.enqueue(number=1)
        work.enqueue(number=2)

    assert ran == [1, 2]
