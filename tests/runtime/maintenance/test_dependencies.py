"""Flows with real workers: each job after those it waits for, through crashes."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from mainspring import Context, Fail, FlowState, JobState, Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.rows import insert_job
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working


async def test_a_diamond_runs_in_order_with_what_its_parents_gave(app: Mainspring):
    ran: list[str] = []

    @app.job
    async def load(name: str) -> str:
        ran.append(name)
        return name.upper()

    @app.job
    async def join(ctx: Context) -> list[str]:
        ran.append("join")
        return sorted(str(parent.result) for parent in await ctx.aparents())

    flow = app.flow("diamond")
    top = flow.add(load, name="top")
    sides = [flow.add(load, name=side, after=[top]) for side in ("left", "right")]
    bottom = flow.add(join, after=sides)
    async with working(app, poll_seconds=30):
        handle = await flow.aenqueue()
        result = await handle.jobs[bottom].aresult(10)

    assert result == ["LEFT", "RIGHT"]
    assert (ran[0], ran[-1], sorted(ran[1:3])) == ("top", "join", ["left", "right"])
    assert (await handle.aget()).state is FlowState.SUCCEEDED


async def test_a_plain_function_reads_its_parents_too(app: Mainspring):
    @app.job
    def give() -> int:
        return 7

    @app.job
    def take(ctx: Context) -> list[tuple[str | None, object]]:
        return [(parent.step, parent.result) for parent in ctx.parents()]

    flow = app.flow("pair")
    first = flow.add(give, step="first")
    last = flow.add(take, after=[first])
    async with working(app):
        handle = await flow.aenqueue()

        assert await handle.jobs[last].aresult(10) == [["first", 7]]


async def test_failure_cancels_the_rest_and_the_flow_can_be_retried(app: Mainspring):
    is_broken = True

    @app.job(max_attempts=1)
    async def first() -> Fail | None:
        return Fail("broken") if is_broken else None

    @app.job
    async def second() -> str:
        return "done"

    flow = app.flow("pair")
    last = flow.add(second, after=[flow.add(first)])
    async with working(app):
        handle = await flow.aenqueue()
        job = await ended(handle.jobs[last])
        assert (job.state, (await handle.aget()).state) == (JobState.CANCELED, FlowState.FAILED)

        is_broken = False
        assert await app.flows.aretry(handle.id) == 2
        assert await handle.jobs[last].aresult(10) == "done"


async def test_a_child_that_continues_runs_after_a_failure(app: Mainspring):
    @app.job(max_attempts=1)
    async def broken() -> Fail:
        return Fail("no")

    @app.job
    async def clean_up(ctx: Context) -> list[str]:
        return [str(parent.state) for parent in await ctx.aparents()]

    async with working(app):
        parent = await broken.aenqueue()
        child = await clean_up.aenqueue(after=[parent], on_parent_failure="continue")

        assert await child.aresult(10) == ["failed"]


async def test_a_child_of_a_job_that_has_ended_starts_at_once(app: Mainspring):
    @app.job
    async def work() -> str:
        return "done"

    async with working(app, poll_seconds=30):
        parent = await work.aenqueue()
        await parent.aresult(10)

        assert await (await work.aenqueue(after=[parent])).aresult(2.5) == "done"


@pytest.mark.parametrize("child_state", ["blocked", "canceled"])
async def test_a_thousand_that_wait_for_a_retry_hide_no_child_that_can_go(
    app: Mainspring, connection: psycopg.Connection, child_state: str
):
    @app.job
    async def work() -> str:
        return "done"

    failed = insert_job(connection, JobState.FAILED)
    connection.execute(
        "insert into mainspring.dependencies (job_id, parent_id, on_failure)"
        " select nextval('mainspring.job_ids'), %s, 'wait' from generate_series(1, 1100)",
        (failed,),
    )
    if child_state == "blocked":
        connection.execute(
            "insert into mainspring.jobs (job_id, definition, state, waits_for)"
            " select job_id, 'work', 'blocked', 'parents' from mainspring.dependencies"
        )
    parent = insert_job(connection, JobState.SUCCEEDED)
    await app.aregister_definitions()
    child = await work.aenqueue(after=[parent])
    async with working(app):
        assert await child.aresult(5) == "done"


async def test_a_chain_of_a_hundred_runs_to_its_end(app: Mainspring):
    @app.job
    async def work(number: int) -> int:
        return number

    flow = app.flow("chain")
    last = flow.chain(*(flow.add(work, number=number) for number in range(100)))
    async with working(app, poll_seconds=30):
        handle = await flow.aenqueue()

        assert await handle.jobs[last].aresult(20) == 99


async def test_a_parent_that_commits_by_itself_lets_its_child_go(app: Mainspring):
    @app.job
    async def parent(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("select 1")

    @app.job
    async def child() -> str:
        return "done"

    flow = app.flow("pair")
    last = flow.add(child, after=[flow.add(parent)])
    async with working(app, poll_seconds=30):
        handle = await flow.aenqueue()

        assert await handle.jobs[last].aresult(2.5) == "done"


async def test_a_flow_can_be_canceled_while_it_runs(app: Mainspring):
    began = asyncio.Event()

    @app.job
    async def first() -> None:
        began.set()
        await asyncio.sleep(apps.FOR_EVER)

    @app.job
    async def second() -> None:
        """Does nothing."""

    flow = app.flow("pair")
    last = flow.add(second, after=[flow.add(first)])
    async with working(app):
        handle = await flow.aenqueue()
        await began.wait()
        assert await app.flows.acancel(handle.id) == 2
        for job in handle.jobs.values():
            assert (await ended(job)).state is JobState.CANCELED

    assert handle.jobs[last].id
    assert (await handle.aget()).state is FlowState.CANCELED


def test_a_flow_survives_workers_that_are_killed(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    flow = shared_app.flow("layers")
    layer = [flow.add(apps.record, number=number) for number in range(20)]
    for depth in range(1, 6):
        layer = [flow.add(apps.record, number=depth, after=layer[i : i + 3]) for i in range(20)]
    handle = flow.enqueue()
    first = start_worker(lease_seconds=1, concurrency=3, prefetch=3)
    wait_until(lambda: len(reading.notes(connection, "ran")) >= 20, 30)
    first.kill()

    start_worker().started(connection)

    wait_until(lambda: handle.get().state is FlowState.SUCCEEDED, 60)
    assert handle.get().counts == {JobState.SUCCEEDED: 120}
    assert _runs_before_its_parents(connection) == []


def _runs_before_its_parents(connection: psycopg.Connection) -> list[tuple[int, int]]:
    return connection.execute(
        "select d.job_id, d.parent_id from mainspring.dependencies as d"
        " join notes as child on child.job_id = d.job_id"
        " where child.at < (select min(parent.at) from notes as parent"
        "                    where parent.job_id = d.parent_id)"
    ).fetchall()


async def test_nothing_runs_before_it_is_approved(app: Mainspring):
    ran: list[int] = []

    @app.job(approvals_needed=1, approvers=["ann"], approval_expiry=timedelta(hours=1))
    async def risky(number: int) -> int:
        ran.append(number)
        return number

    async with working(app, poll_seconds=30):
        handle = await risky.aenqueue(number=7)
        assert (await handle.ajob()).state is JobState.AWAITING_APPROVAL
        assert ran == []
        await app.approvals.aapprove(handle.id, by="ann")

        assert await handle.aresult(5) == 7


async def test_what_nobody_approves_in_time_is_canceled(app: Mainspring):
    @app.job(approvals_needed=1, approval_expiry=timedelta(milliseconds=1))
    async def risky() -> None:
        """Never runs."""

    async with working(app):
        job = await ended(await risky.aenqueue())

    assert job.state is JobState.CANCELED
    assert (job.last_error or "").startswith("nobody approved it before")


async def test_a_scheduled_job_of_a_limit_and_an_approval_waits_for_both(
    app: Mainspring, connection: psycopg.Connection
):
    @app.schedule(every=timedelta(hours=1))
    @app.job(concurrency=1, approvals_needed=1)
    async def report() -> str:
        return "done"

    async with app.schedules.running(), working(app):
        await app.schedules.atrigger("report")

        async def waiting() -> list[int]:
            return [approval.job_id for approval in await app.approvals.alist()]

        job_ids = await await_until(waiting)
        await app.approvals.aapprove(job_ids[0])
        await await_until(lambda: reading.state(connection, job_ids[0]) == "succeeded")
