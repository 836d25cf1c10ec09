"""A SQL function does its work once, however its worker ends between its commit and the report."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from mainspring import JobState, Mainspring
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working

SCHEMA = """
create schema civic;
create table civic.log (line text);
create function civic.notes(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values (payload ->> 'line');
    return jsonb_build_object('success', true, 'line', payload ->> 'line');
end $$;
create function civic.declines(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values (payload ->> 'line');
    return '{"success": false, "message": "no"}';
end $$;
"""
# What a worker reports needs this table, and what the function does not.
HOLD_REPORTS = "lock table mainspring.attempts in share mode"
END_REPORTS = """
select pg_terminate_backend(pid) from pg_stat_activity
 where application_name = 'mainspring finish' and datname = current_database()
"""
REPORTING = """
select count(*) from pg_stat_activity where application_name = 'mainspring finish'
   and datname = current_database() and wait_event_type = 'Lock'
"""


def log(connection: psycopg.Connection) -> list[str]:
    return [line for (line,) in connection.execute("select line from civic.log")]


def is_reporting(connection: psycopg.Connection) -> bool:
    return connection.execute(REPORTING).fetchone() == (1,)


def test_a_worker_killed_between_commit_and_report_does_not_run_the_function_again(
    shared_app, start_worker, connection, database_url
):
    connection.execute(SCHEMA)
    shared_app.definitions.create("note", "sql", function="civic.notes")
    doomed = start_worker()
    # So that it is past its start, which needs the table as well.
    shared_app.enqueue("note", {"line": "first"}).result(timeout=20)
    with psycopg.connect(database_url) as holder:
        holder.execute(HOLD_REPORTS)
        handle = shared_app.enqueue("note", {"line": "once"})
        wait_until(lambda: is_reporting(connection))
        doomed.kill()
        connection.execute(END_REPORTS)
        wait_until(lambda: not is_reporting(connection))
    assert log(connection) == ["first", "once"]
    assert handle.job().state is JobState.RUNNING

    start_worker()
    job = wait_until(lambda: (found := handle.job()).is_final and found)

    assert (job.state, job.attempt) == (JobState.SUCCEEDED, 2)
    assert job.result == {"success": True, "line": "once"}
    assert log(connection) == ["first", "once"]


@pytest.fixture
async def app(database_url: str, connection: psycopg.Connection) -> AsyncIterator[Mainspring]:
    connection.execute(SCHEMA)
    async with Mainspring(database_url) as app:
        yield app


HOLD_COMMIT = """
create function civic.waits() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(7);
    return null;
end $$;
create constraint trigger waits after insert on civic.log deferrable initially deferred
    for each row execute function civic.waits();
"""


@pytest.mark.parametrize("function", ["civic.notes", "civic.declines"])
async def test_an_attempt_that_lost_its_lease_keeps_nothing(
    app, connection, database_url, function
):
    """The function has returned, and its job is taken back before it commits."""
    connection.execute(HOLD_COMMIT)
    await app.definitions.acreate("note", "sql", function=function, max_attempts=1)
    async with working(app):
        with psycopg.connect(database_url) as holder:
            holder.execute("select pg_advisory_lock(7)")
            handle = await app.aenqueue("note", {"line": "late"})
            await await_until(lambda: has_waiter(connection))
            connection.execute("update mainspring.jobs set fence = nextval('mainspring.fences')")
        await await_until(lambda: not has_session(connection))

    assert log(connection) == []
    assert connection.execute("select count(*) from mainspring.receipts").fetchone() == (0,)
    assert not (await handle.ajob()).is_final


async def test_a_cancel_that_comes_during_the_commit_comes_too_late(app, connection, database_url):
    connection.execute(HOLD_COMMIT)
    await app.definitions.acreate("note", "sql", function="civic.notes", max_attempts=1)
    async with working(app) as worker:
        with psycopg.connect(database_url) as holder:
            holder.execute("select pg_advisory_lock(7)")
            handle = await app.aenqueue("note", {"line": "done"})
            await await_until(lambda: has_waiter(connection))
            await app.jobs.acancel(handle.id)
            running = worker.parts.runners.running
            await await_until(lambda: [job for job in running.values() if job.stop])
        job = await ended(handle)

    assert (job.state, log(connection)) == (JobState.SUCCEEDED, ["done"])


def has_waiter(connection: psycopg.Connection) -> bool:
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    in_here = "database = (select oid from pg_database where datname = current_database())"
    return connection.execute(f"{waiting} and objid = 7 and {in_here}").fetchone() == (1,)


def has_session(connection: psycopg.Connection) -> bool:
    """Whether a function is being run."""
    sessions = (
        "select count(*) from pg_stat_activity"
        " where application_name = 'mainspring role' and datname = current_database()"
    )
    return connection.execute(sessions).fetchone() != (0,)
