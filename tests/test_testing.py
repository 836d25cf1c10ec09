"""Testing: drain, inline mode and assertions."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring import Cancel, Context, Fail, JobState, Mainspring, Snooze
from mainspring.domain.errors import JobUnsuccessful
from mainspring.testing import (
    adrain,
    assert_enqueued,
    bind,
    drain,
    inline,
    refute_enqueued,
)

Failure = pytest.fail.Exception


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with Mainspring(database_url) as app:
        yield app


@pytest.fixture
def seen(app: Mainspring) -> list[int]:
    """What the job `see` was called with."""
    numbers: list[int] = []

    @app.job(key="see")
    async def see(number: int, note: str = "") -> int:
        numbers.append(number)
        return number

    return numbers


# Draining


async def test_drain_runs_what_is_ready_in_the_order_of_claiming(app, seen):
    for number, priority in [(1, 200), (2, 100), (3, 100), (4, 0)]:
        await app.aenqueue("see", {"number": number}, priority=priority)

    summary = await adrain(app)

    assert seen == [4, 2, 3, 1]
    assert (summary.succeeded, summary.total) == (4, 4)


async def test_drain_serves_tenants_by_weight(app, seen):
    for tenant_id, weight in (("acme", 1), ("bell", 3)):
        await app.tenants.acreate(tenant_id, weight=weight)
        for _ in range(12):
            await app.aenqueue("see", {"number": weight}, tenant_id=tenant_id)

    await adrain(app)

    assert 8 <= seen[:12].count(3) <= 10


async def test_drain_stores_the_result_and_leaves_no_worker_behind(app, seen, connection):
    handle = await app.aenqueue("see", {"number": 7})
    await adrain(app)

    assert await handle.aresult(timeout=0) == 7
    assert connection.execute("select count(*) from mainspring.worker_status").fetchone() == (0,)


def test_drain_runs_plain_functions_and_what_they_enqueue(app, seen):
    @app.job
    def parent(number: int, ctx: Context) -> None:
        ctx.enqueue("see", number=number + 1)

    parent.enqueue(1)

    assert drain(app).succeeded == 2
    assert seen == [2]


async def test_drain_of_one_queue_leaves_the_others(app, seen):
    await app.aenqueue("see", {"number": 1}, queue="a")
    await app.aenqueue("see", {"number": 2}, queue="b")

    assert (await adrain(app, queue="b")).succeeded == 1
    assert seen == [2]


async def test_drain_raises_what_the_handler_raised_after_it_was_reported(app):
    @app.job
    async def divide(by: int) -> float:
        return 1 / by

    handle = await divide.aenqueue(by=0)

    with pytest.raises(ZeroDivisionError):
        await adrain(app)
    job = await handle.ajob()
    assert (job.state, job.failures) == (JobState.QUEUED, 1)
    assert "ZeroDivisionError" in (job.last_error or "")


async def test_drain_collects_errors_and_does_not_wait_for_the_backoff(app, seen):
    @app.job
    def fail() -> None:
        raise ValueError("no")

    fail.enqueue()
    await app.aenqueue("see", {"number": 1})
    summary = await adrain(app, with_errors="collect")

    assert (summary.retried, summary.succeeded) == (1, 1)
    assert [str(error) for error in summary.errors] == ["no"]


async def test_with_scheduled_retries_until_the_attempts_are_used_up(app):
    @app.job(max_attempts=3)
    async def fail() -> None:
        raise ValueError("no")

    await fail.aenqueue()
    summary = await adrain(app, with_scheduled=True, with_errors="collect")

    assert (summary.retried, summary.dead_letter) == (2, 1)


async def test_a_job_that_waits_for_its_time_runs_only_with_scheduled(app, seen):
    for number, hours in [(1, 48), (2, 24)]:
        await app.aenqueue("see", {"number": number}, delay=timedelta(hours=hours))

    assert (await adrain(app)).total == 0
    assert (await adrain(app, with_scheduled=True)).succeeded == 2
    assert seen == [2, 1]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Fail("bad address"), "failed"),
        (Cancel("not needed"), "canceled"),
        (Snooze(timedelta(hours=1)), "snoozed"),
    ],
)
async def test_an_answer_is_counted_and_raises_nothing(app, answer, outcome):
    @app.job
    async def reply() -> object:
        return answer

    await reply.aenqueue()
    summary = await adrain(app)

    assert (getattr(summary, outcome), summary.total) == (1, 1)


async def test_a_result_that_cannot_be_stored_is_raised(app):
    @app.job
    async def answer() -> object:
        return object()

    await answer.aenqueue()

    with pytest.raises(JobUnsuccessful, match="is failed: the handler returned a object"):
        await adrain(app)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_timeout_is_raised_as_what_it_is(app, is_async):
    async def hang() -> None:
        await asyncio.Event().wait()

    def hang_in_thread(ctx: Context) -> None:
        while True:
            ctx.raise_if_canceled()

    function = hang if is_async else hang_in_thread
    await app.job(key="hang", timeout=timedelta(milliseconds=50))(function).aenqueue()

    with pytest.raises(JobUnsuccessful, match=r"exceeded its timeout of 0\.05 s"):
        await adrain(app)


async def test_a_job_without_a_handler_here_is_counted_and_waits(app, connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('elsewhere', 'python')"
    )
    handle = await app.aenqueue("elsewhere", {})

    assert (await adrain(app)).unhandled == 1
    assert (await handle.ajob()).waits_for == "handler"


async def test_drain_commits_a_transaction_together_with_the_success(app, connection):
    connection.execute("create table effects (job_id bigint)")

    @app.job
    async def write(ctx: Context) -> None:
        async with ctx.transaction() as inside:
            await inside.execute("insert into effects values (%s)", (ctx.job_id,))

    handle = await write.aenqueue()

    assert (await adrain(app)).succeeded == 1
    assert connection.execute("select job_id from effects").fetchall() == [(handle.id,)]


async def test_a_chain_without_end_is_noticed(app):
    @app.job
    async def again(ctx: Context) -> None:
        await ctx.aenqueue("again")

    await again.aenqueue()

    with pytest.raises(AssertionError, match="5 executions and jobs are still ready"):
        await adrain(app, at_most=5)


# Inline


def test_inline_runs_the_job_before_the_enqueue_returns(app, seen):
    with inline(app):
        handle = app.enqueue("see", {"number": 1})

        assert seen == [1]
        assert handle.job().state is JobState.SUCCEEDED
    app.enqueue("see", {"number": 2})
    assert seen == [1]


async def test_inline_runs_follow_ups_inside_their_parent(app):
    order: list[str] = []

    @app.job
    async def child() -> None:
        order.append("child")

    @app.job
    async def parent(ctx: Context) -> None:
        await ctx.aenqueue(child)
        order.append("parent")

    with inline(app):
        await parent.aenqueue()

    assert order == ["child", "parent"]


def test_inline_raises_what_the_handler_raised(app):
    @app.job
    def fail() -> None:
        raise LookupError("gone")

    with inline(app), pytest.raises(LookupError, match="gone"):
        fail.enqueue()
    assert_enqueued(app, fail, state=JobState.QUEUED)


async def test_inline_runs_bulk_jobs_and_leaves_delayed_ones(app, seen):
    with inline(app):
        await app.aenqueue_many("see", [{"number": n} for n in range(3)])
        await app.aenqueue("see", {"number": 9}, delay=timedelta(hours=1))

    assert seen == [0, 1, 2]


def test_inline_runs_a_job_of_the_callers_transaction_once_it_is_committed(app, seen, database_url):
    app.register_definitions()
    with inline(app):
        with psycopg.connect(database_url) as connection:
            app.enqueue("see", {"number": 1}, connection=connection)
            connection.rollback()
        with psycopg.connect(database_url) as connection:
            app.enqueue("see", {"number": 2}, connection=connection)
            assert seen == []

    assert seen == [2]


# Looking


def test_assert_enqueued_returns_the_job_that_fits(app, seen):
    handle = app.enqueue("see", {"number": 1, "note": "x"}, priority=5, queue="fast")

    job = assert_enqueued(app, "see", priority=5, queue="fast", number=1)

    assert job.id == handle.id


@pytest.mark.parametrize(
    "wanted",
    [{"number": 2}, {"other": 1}, {"queue": "slow"}, {"priority": 6}, {"state": "running"}],
)
def test_what_differs_in_one_thing_does_not_fit(app, seen, wanted):
    app.enqueue("see", {"number": 1}, priority=5, queue="fast")

    refute_enqueued(app, "see", **wanted)
    with pytest.raises(Failure, match=r"(?s)these were:.*see \{'number': 1\} \(queued, queue fast"):
        assert_enqueued(app, "see", **wanted)


def test_the_time_may_differ_by_the_delta(app, seen):
    due_at = datetime.now(UTC) + timedelta(hours=1)
    app.enqueue("see", {"number": 1}, scheduled_for=due_at)

    assert_enqueued(
        app, "see", scheduled_for=due_at + timedelta(seconds=59), delta=timedelta(0, 60)
    )
    refute_enqueued(
        app, "see", scheduled_for=due_at + timedelta(seconds=61), delta=timedelta(0, 60)
    )


def test_another_tenants_job_does_not_count(app, seen, connection):
    connection.execute("insert into mainspring.tenants (tenant_id) values ('acme')")
    app.enqueue("see", {"number": 1}, tenant_id="acme")

    refute_enqueued(app, "see")
    assert_enqueued(app, "see", tenant_id="acme")


async def test_a_finished_job_was_enqueued_too(app, seen):
    await app.aenqueue("see", {"number": 1})
    await adrain(app)

    assert_enqueued(app, "see", number=1)
    with pytest.raises(Failure, match=r"a job \(see\) was enqueued:\n  1 see"):
        refute_enqueued(app, "see")


def test_nothing_enqueued_is_said_plainly(app):
    with pytest.raises(Failure, match=r"no job \(see, number=1\) was enqueued; nothing was$"):
        assert_enqueued(app, "see", number=1)


# Binding


def test_bind_points_an_app_elsewhere_and_back(app, seen):
    with Mainspring("postgresql://nobody@127.0.0.1:1/nowhere") as own:
        own.register(app.handlers["see"])
        with bind(own, app.settings.database_url):
            own.enqueue("see", {"number": 1})

        assert own.settings.database_url == "postgresql://nobody@127.0.0.1:1/nowhere"
    assert_enqueued(app, "see", number=1)
