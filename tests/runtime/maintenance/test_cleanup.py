"""Cleaning up beside a queue that goes on: nothing that tidies delays what keeps a promise."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring import Context, JobState, Mainspring
from mainspring.db.connect import connect
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.runtime.maintenance.cleanup import Cleanup
from mainspring.runtime.maintenance.pruning import CleanupTaken, HistoryPruner, bounded
from tests.support.log_lines import captured_lines, named
from tests.support.rows import count, insert, insert_job
from tests.support.waiting import await_until
from tests.support.workers import working

DAY = timedelta(days=1)
WAITING = "select from pg_locks where not granted"
LONG_AGO = """
create table mainspring.jobs_history_20200101 partition of mainspring.jobs_history
for values from ('2020-01-01Z') to ('2020-01-02Z')
"""
DUE = "update mainspring.jobs set scheduled_for = now() where job_id = %s"
SHOWN = "select current_setting('statement_timeout'), current_setting('lock_timeout')"


async def test_a_delayed_job_is_on_time_though_cleaning_up_hangs(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    @app.job
    async def work() -> str:
        return "done"

    with psycopg.connect(database_url) as other:
        other.execute("lock table mainspring.enqueue_keys in access exclusive mode")
        async with working(app):
            await await_until(lambda: connection.execute(WAITING).fetchone() is not None)
            handle = await work.options(delay=timedelta(milliseconds=200)).aenqueue()

            assert await handle.aresult(3) == "done"


async def test_of_many_workers_one_cleans_up(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    async def settings(connection: AsyncConnection) -> tuple[str, ...] | None:
        return await (await connection.execute(SHOWN)).fetchone()

    assert await bounded(aconnection, settings) == ("10s", "200ms")
    assert await settings(aconnection) == ("0", "0")
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('mainspring.cleanup'))")
        with pytest.raises(CleanupTaken):
            await bounded(aconnection, settings)


async def test_a_duty_that_fails_keeps_none_of_the_others_from_their_turn(
    database_url: str, connection: psycopg.Connection
):
    insert(
        connection,
        "enqueue_keys",
        tenant_id="default",
        kind="window",
        key="k",
        job_id=1,
        expires_at=datetime.now(UTC) - DAY,
    )
    connection.execute("alter table mainspring.retention rename to elsewhere")
    reconnecting = ReconnectingConnection(database_url, name="test")

    with captured_lines() as lines:
        await Cleanup(reconnecting)._pass_history()
    await reconnecting.close()

    assert count(connection, "enqueue_keys") == 0
    errors = [line["error"] for line in named(lines, "cleanup_failed")]
    assert 'relation "mainspring.retention" does not exist' in errors


# Partitions


@contextmanager
def reading_history(url: str) -> Iterator[None]:
    """Someone has looked at history and has not ended its transaction."""
    with psycopg.connect(url) as reader:
        reader.execute("select count(*) from mainspring.jobs_history")
        yield


def test_dropping_a_day_delays_nobody_who_finishes_though_someone_reads(
    connection: psycopg.Connection, database_url: str
):
    connection.execute(LONG_AGO)

    def drop() -> None:
        with (
            psycopg.connect(database_url, autocommit=True) as cleaner,
            suppress(psycopg.errors.LockNotAvailable),
        ):
            cleaner.execute("select mainspring.drop_partitions()")

    with reading_history(database_url):
        thread = threading.Thread(target=drop)
        thread.start()
        while connection.execute(WAITING).fetchone() is None and thread.is_alive():
            pass
        began_at = time.monotonic()
        insert_job(connection, JobState.SUCCEEDED)
        took = time.monotonic() - began_at
        thread.join()

    assert took < 1


async def test_a_day_that_someone_reads_is_dropped_when_that_ends(
    connection: psycopg.Connection, database_url: str, capsys: pytest.CaptureFixture[str]
):
    connection.execute(LONG_AGO)
    insert_job(connection, JobState.FAILED, finished_at=datetime(2020, 1, 1, 9, tzinfo=UTC))
    cleanup = Cleanup(ReconnectingConnection(database_url, name="test"))
    with psycopg.connect(database_url, autocommit=True) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from mainspring.jobs_history")
        running = asyncio.create_task(cleanup._pass_history())
        await await_until(lambda: connection.execute(WAITING).fetchone() is not None)
        reader.execute("commit")
        await running
    await cleanup._connection.close()

    gone = "select to_regclass('mainspring.jobs_history_20200101')"
    assert connection.execute(gone).fetchone() == (None,)
    tallied = "select sum(count) from mainspring.tally_status"
    assert connection.execute(tallied).fetchone() == (-1,)


# Parents


async def prune(url: str) -> int:
    async with await connect(url, name="test") as pruning:

        async def run(action):
            return await action(pruning)

        return await HistoryPruner(run).prune()


async def test_the_result_of_a_parent_is_kept_until_its_child_has_ended(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    long_ago = datetime.now(UTC) - 40 * DAY
    parent = insert_job(connection, JobState.SUCCEEDED, finished_at=long_ago)
    child = insert_job(connection, JobState.QUEUED, waits_for="time")
    insert(connection, "dependencies", job_id=child, parent_id=parent, outcome="succeeded")

    assert await prune(database_url) == 0
    connection.execute("delete from mainspring.jobs where job_id = %s", (child,))
    connection.execute("delete from mainspring.prune_marks")  # As when a day has passed.
    assert await prune(database_url) == 1


async def test_a_child_reads_the_results_of_parents_whose_history_was_pruned(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    @app.job
    async def give(number: int) -> int:
        return number

    @app.job
    async def take(ctx: Context) -> list[object]:
        return sorted(parent.result for parent in await ctx.aparents())

    flow = app.flow("late")
    parents = [flow.add(give, number=number) for number in (1, 2)]
    child = flow.add(take.options(delay=DAY), after=parents)
    async with working(app):
        handle = await flow.aenqueue()
        for parent in (*(handle.jobs[each] for each in parents), await give.aenqueue(number=3)):
            await parent.aresult(10)
    connection.execute(LONG_AGO)
    connection.execute("update mainspring.jobs_history set finished_at = '2020-01-01 12:00Z'")

    assert connection.execute("select mainspring.drop_partitions()").fetchone() == (1,)
    await prune(database_url)
    assert count(connection, "jobs_history") == len(parents), "the job without a child is gone"
    connection.execute(DUE, (handle.jobs[child].id,))
    async with working(app):
        assert await handle.jobs[child].aresult(10) == [1, 2]


def test_a_day_with_a_parent_of_a_live_child_is_dropped_but_for_the_parent(
    connection: psycopg.Connection,
):
    connection.execute(LONG_AGO)
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    parent, _ = (insert_job(connection, JobState.SUCCEEDED, finished_at=noon) for _ in range(2))
    child = insert_job(connection, JobState.QUEUED)
    insert(connection, "dependencies", job_id=child, parent_id=parent, outcome="succeeded")

    assert connection.execute("select mainspring.drop_partitions()").fetchone() == (1,)

    left = connection.execute(
        "select job_id, tableoid::regclass::text from mainspring.jobs_history"
    )
    assert left.fetchall() == [(parent, "mainspring.jobs_history_default")]
    tallied = "select sum(count) from mainspring.tally_status"
    assert connection.execute(tallied).fetchone() == (-1,)


# Windows


def marks(connection: psycopg.Connection) -> dict[timedelta, datetime]:
    return dict(connection.execute("select keep, pruned_until from mainspring.prune_marks"))


async def test_a_pass_begins_where_the_last_one_ended_until_the_day_is_over(
    connection: psycopg.Connection, database_url: str
):
    connection.execute(LONG_AGO)
    await prune(database_url)
    first = marks(connection)
    insert_job(connection, JobState.FAILED, finished_at=first[30 * DAY] - DAY)

    assert await prune(database_url) == 0
    assert set(first) == {7 * DAY, 30 * DAY}
    assert all(first[keep] < marks(connection)[keep] for keep in first)
    connection.execute("update mainspring.prune_marks set swept_at = now() - interval '25 hours'")
    assert await prune(database_url) == 1


async def test_a_policy_that_changes_makes_pruning_start_again(
    connection: psycopg.Connection, database_url: str
):
    connection.execute(LONG_AGO)
    insert_job(connection, JobState.SUCCEEDED, finished_at=datetime.now(UTC) - 3 * DAY)
    assert await prune(database_url) == 0

    connection.execute("update mainspring.retention set keep = '2 days' where state = 'succeeded'")

    assert await prune(database_url) == 1
    assert set(marks(connection)) == {2 * DAY, 30 * DAY}


# Constraints


async def test_what_a_migration_has_added_is_checked_for_old_rows_later(
    connection: psycopg.Connection, database_url: str
):
    reconnecting = ReconnectingConnection(database_url, name="test")
    unchecked = "select count(*) from pg_constraint where not convalidated"
    assert connection.execute(unchecked).fetchone() != (0,)

    await Cleanup(reconnecting)._pass_history()
    await reconnecting.close()

    assert connection.execute(unchecked).fetchone() == (0,)
