"""Batches: a row that cannot be processed is set aside, and all others go on."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring import JobState, Mainspring
from mainspring.runtime.maintenance.batches import Batch, run_batch
from tests.support import reading
from tests.support.databases import change_schema
from tests.support.log_lines import captured_lines
from tests.support.rows import YESTERDAY, insert, insert_job
from tests.support.waiting import await_until
from tests.support.workers import working

# Whatever keeps one row from being written: here a trigger, elsewhere an index or a corrupt page.
POISON = """
create function refuse_poison() returns trigger language plpgsql as
$$ begin raise exception 'job % is poison', old.job_id; end $$;
create trigger poison before update or delete on mainspring.jobs
for each row when (old.tags = '{poison}') execute function refuse_poison();
create trigger poison before delete on mainspring.jobs_history
for each row when (old.tags = '{poison}') execute function refuse_poison();
"""
# Fails whatever the rows are, as after a privilege was revoked or a column renamed.
BROKEN = """
create function broken() returns trigger language plpgsql as
$$ begin perform no_such_column from mainspring.jobs; return new; end $$;
create trigger broken before update on mainspring.jobs
for each row when (old.waits_for is not null or old.deadline_at is not null)
execute function broken();
"""
SOON = timedelta(milliseconds=1)
PAST = "now() - interval '40 days'"


@pytest.fixture
def poison(connection: psycopg.Connection) -> None:
    connection.execute(POISON)


def aside(connection: psycopg.Connection) -> dict[str, list[int]]:
    """By duty, the jobs that are set aside."""
    query = "select duty, array_agg(key order by key) from mainspring.set_aside group by duty"
    return dict(connection.execute(query).fetchall())


def is_canceled(connection: psycopg.Connection, job_id: int) -> bool:
    return reading.state(connection, job_id) == "canceled"


async def test_a_job_that_cannot_be_promoted_delays_no_other(
    app: Mainspring, connection: psycopg.Connection, poison: None
):
    @app.job
    async def work() -> str:
        return "done"

    await app.aregister_definitions()
    bad = await work.options(delay=SOON, tags=["poison"]).aenqueue()
    good = [await work.options(delay=SOON).aenqueue() for _ in range(5)]
    async with working(app, poll_seconds=30):
        for handle in good:
            assert await handle.aresult(5) == "done"

    assert (await bad.ajob()).state is JobState.QUEUED
    assert aside(connection) == {"promote": [bad.id]}


async def test_a_job_that_is_set_aside_says_why(app: Mainspring, connection: psycopg.Connection):
    connection.execute(POISON)
    connection.execute(
        "drop trigger poison on mainspring.jobs; create trigger poison before update"
        " on mainspring.jobs for each row when (new.waits_for is null)"
        " execute function refuse_poison()"
    )

    @app.job
    async def work() -> None:
        """Never runs."""

    await app.aregister_definitions()
    bad = await work.options(delay=SOON, tags=["poison"]).aenqueue()
    async with working(app):
        await await_until(lambda: aside(connection))

    assert (await bad.ajob()).last_error == f"set aside by promote: job {bad.id} is poison"


async def test_neither_deadline_nor_cancel_nor_approval_is_held_up_by_a_bad_job(
    app: Mainspring, connection: psycopg.Connection, poison: None
):
    def jobs(**columns: Any) -> list[int]:
        return [
            insert_job(connection, JobState.QUEUED, tags=tags, waits_for="handler", **columns)
            for tags in (["poison"], None)
        ]

    late = jobs(deadline_at=YESTERDAY)
    canceled = jobs(cancel_requested_at=YESTERDAY)
    unapproved = [
        insert_job(connection, JobState.AWAITING_APPROVAL, tags=tags) for tags in (["poison"], None)
    ]
    for job_id in unapproved:
        row = {"job_id": job_id, "tenant_id": "default", "needed": 1}
        insert(connection, "approvals", **row, expires_at=YESTERDAY)
    async with working(app):
        for _, job_id in (late, canceled, unapproved):
            await await_until(partial(is_canceled, connection, job_id))

    assert aside(connection) == {
        "expire": late[:1],
        "settle_cancels": canceled[:1],
        "expire_approvals": unapproved[:1],
    }


async def test_the_jobs_of_a_dead_worker_are_recovered_but_for_the_bad_one(
    app: Mainspring, connection: psycopg.Connection, poison: None
):
    @app.job
    async def work() -> str:
        return "done"

    await app.aregister_definitions()
    bad, good = (
        insert_job(connection, JobState.RUNNING, tags=tags, fence=fence)
        for fence, tags in ((1, ["poison"]), (2, None))
    )
    lost = {"worker_id": 7, "expires_at": "-infinity", "pid": 1, "concurrency": 1, "name": "dead"}
    facts = {"host": "h", "process_identity": "", "queues": ["default"], "version": "0"}
    insert(connection, "workers", **lost, **facts)
    async with working(app):
        await await_until(lambda: reading.state(connection, good) == "succeeded")

    assert reading.state(connection, bad) == "running"
    assert aside(connection)["recover"] == [bad]


async def test_a_child_that_cannot_be_settled_delays_no_other(
    app: Mainspring, connection: psycopg.Connection, poison: None
):
    @app.job
    async def work() -> str:
        return "done"

    async with working(app):
        parent = await work.aenqueue()
        bad = await work.aenqueue(after=[parent], tags=["poison"])
        good = [await work.aenqueue(after=[parent]) for _ in range(3)]
        for handle in good:
            assert await handle.aresult(5) == "done"

    assert (await bad.ajob()).state is JobState.BLOCKED
    assert aside(connection) == {"settle": [bad.id]}


async def test_history_is_pruned_around_a_job_that_cannot_be(
    app: Mainspring, connection: psycopg.Connection, poison: None
):
    old = [insert_job(connection, JobState.FAILED, tags=tags) for tags in (None, ["poison"], None)]
    connection.execute(
        f"alter table mainspring.jobs_history disable trigger poison;"
        f"update mainspring.jobs_history set finished_at = {PAST};"
        f"alter table mainspring.jobs_history enable trigger poison".encode()
    )
    async with working(app):
        await await_until(lambda: aside(connection))

        def left() -> bool:
            rows = connection.execute("select job_id from mainspring.jobs_history").fetchall()
            return rows == [(old[1],)]

        await await_until(left)

    assert aside(connection) == {"prune_jobs": [old[1]]}


# What is the fault of no row


async def test_a_broken_statement_is_reported_once_and_its_jobs_run_when_it_is_mended(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def work() -> str:
        return "done"

    await app.aregister_definitions()
    connection.execute(BROKEN)
    jobs = [await work.options(delay=SOON).aenqueue() for _ in range(5)]
    with captured_lines() as logs:
        async with working(app) as worker:
            await await_until(lambda: worker.parts.maintenance.due.passes >= 4)
            assert aside(connection) == {}
            await change_schema(connection, "drop trigger broken on mainspring.jobs")
            for handle in jobs:
                assert await handle.aresult(30) == "done"

    (failure,) = [line for line in logs if line["event"] == "loop_failed"]
    assert "no_such_column" in failure["error"]
    assert {(await handle.ajob()).last_error for handle in jobs} == {None}


async def test_a_broken_duty_holds_up_no_other(app: Mainspring, connection: psycopg.Connection):
    connection.execute(BROKEN.replace("before update", "before delete").replace("new", "old"))
    late = insert_job(connection, JobState.QUEUED, deadline_at=YESTERDAY, queue="left alone")
    canceled = insert_job(
        connection, JobState.QUEUED, cancel_requested_at=YESTERDAY, queue="left alone"
    )
    async with working(app):
        await await_until(partial(is_canceled, connection, canceled))

    assert reading.state(connection, late) == "queued"
    assert aside(connection) == {}


# The piece itself


def failing(at: set[int], error: type[psycopg.Error], calls: list[list[int]]) -> Batch[int]:
    async def run(_: AsyncConnection[Any], chosen: Sequence[int] | None) -> list[int]:
        rows = list(range(8)) if chosen is None else list(chosen)
        calls.append(rows)
        if at & set(rows):
            raise error("no")
        return rows

    async def find(_: AsyncConnection[Any]) -> list[int]:
        return list(range(8))

    return Batch("promote", run, find)


@pytest.mark.parametrize("bad", [set(), {0}, {7}, {3, 4}, set(range(8))], ids=str)
async def test_all_rows_but_the_bad_ones_pass(
    aconnection: AsyncConnection, connection: psycopg.Connection, bad: set[int]
):
    passed = await run_batch(aconnection, failing(bad, psycopg.errors.CheckViolation, []))

    assert sorted(passed) == sorted(set(range(8)) - bad)
    assert aside(connection).get("promote", []) == sorted(bad)


async def test_what_may_pass_later_is_raised_and_nothing_set_aside(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    calls: list[list[int]] = []
    with pytest.raises(psycopg.errors.DeadlockDetected):
        await run_batch(aconnection, failing({3}, psycopg.errors.DeadlockDetected, calls))

    assert len(calls) == 1
    assert aside(connection) == {}


@pytest.mark.parametrize(
    "error", [psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedColumn]
)
async def test_what_any_rows_would_meet_is_raised_at_once(
    aconnection: AsyncConnection, connection: psycopg.Connection, error: type[psycopg.Error]
):
    calls: list[list[int]] = []
    with pytest.raises(error):
        await run_batch(aconnection, failing(set(range(8)), error, calls))

    assert len(calls) == 1
    assert aside(connection) == {}


async def test_a_row_is_set_aside_for_longer_each_time(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    pauses = []
    for _ in range(3):
        await run_batch(aconnection, failing({5}, psycopg.errors.CheckViolation, []))
        query = "select tries, extract(epoch from again_at - failed_at)::integer"
        pauses.append(connection.execute(f"{query} from mainspring.set_aside".encode()).fetchone())

    assert pauses == [(1, 30), (2, 60), (3, 120)]
