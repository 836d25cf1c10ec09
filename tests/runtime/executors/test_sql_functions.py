"""SQL functions as jobs: real functions, a real worker, a role that may do little."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mainspring import AttemptStatus, Job, JobState, Mainspring
from tests.support import rows
from tests.support.databases import role
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

SCHEMA = """
create schema civic;
create table civic.log (line text);
create table civic.secrets (word text);
create function civic.cleanup(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values ('cleanup ' || (payload ->> 'days'));
    raise notice 'removed what is older than % days', payload ->> 'days';
    return jsonb_build_object('success', true, 'message', 'done', 'details', payload);
end $$;
create function civic.bare() returns jsonb language sql
    as $$ select '{"success": true, "message": "no payload"}'::jsonb $$;
create function civic.says_no(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values ('says no');
    return '{"success": false, "message": "the books are closed"}';
end $$;
create function civic.breaks(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values ('breaks');
    perform 1 / (payload ->> 'divisor')::integer;
    return '{"success": true}';
end $$;
create function civic.wanders() returns jsonb language sql as $$ select '"fine"'::jsonb $$;
create function civic.sleeps(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into log values ('slept');
    perform pg_sleep(60);
    return '{"success": true}';
end $$;
create function civic.snoops(payload jsonb) returns jsonb language plpgsql as $$
begin
    return jsonb_build_object('success', true, 'message', (select word from civic.secrets));
end $$;
create function civic.climbs(payload jsonb) returns jsonb language plpgsql as $$
begin
    execute payload ->> 'statement';
    return jsonb_build_object('success', true, 'message', current_user);
end $$;
insert into civic.secrets values ('hunter2');
"""
GRANTS = """
grant usage on schema civic to {role};
grant insert on civic.log to {role};
"""


@pytest.fixture
def limited(database_url: str, connection: psycopg.Connection) -> Iterator[str]:
    """A role that may call the functions and write the log, and nothing else."""
    connection.execute(SCHEMA)
    with role(database_url) as name:
        connection.execute(sql.SQL(GRANTS).format(role=sql.Identifier(name)))
        yield name


@pytest.fixture
async def app(database_url: str, limited: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


async def run(app: Mainspring, role: str, function: str, payload: Any = None, **fields: Any) -> Job:
    """A job of a definition of the function, once it is over."""
    fields = {"max_attempts": 1, **fields}
    await app.definitions.acreate("work", "sql", function=function, role=role, **fields)
    async with working(app):
        return await ended(await app.aenqueue("work", payload or {}))


def log(connection: psycopg.Connection) -> list[str]:
    return [line for (line,) in connection.execute("select line from civic.log")]


async def test_a_function_runs_without_any_code(app, connection, limited):
    job = await run(app, limited, "civic.cleanup", {"days": 30})

    assert job.state is JobState.SUCCEEDED
    assert job.result == {"success": True, "message": "done", "details": {"days": 30}}
    assert log(connection) == ["cleanup 30"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("drop function civic.bare()", "civic.bare does not exist; did you mean civic.breaks?"),
        (
            "drop function civic.bare(); create function civic.bare() returns text return 'fine'",
            "civic.bare returns text; it must return jsonb",
        ),
        ("drop schema civic cascade", "civic.bare does not exist; create it"),
    ],
)
async def test_a_function_that_was_changed_since_fails_with_what_is_wrong(
    app, connection, limited, change, problem, caplog
):
    await app.definitions.acreate("work", "sql", function="civic.bare", role=limited)
    made = await app.aenqueue("work", {}, max_attempts=1)
    connection.execute(change)
    async with working(app):
        job = await ended(made)

    (attempt,) = await app.jobs.aattempts(job.id)
    assert (job.last_error, attempt.error) == (problem, problem)
    assert "Traceback" not in caplog.text


async def test_a_function_may_take_no_payload(app, limited):
    job = await run(app, limited, "civic.bare", {"ignored": 1})

    assert job.result == {"success": True, "message": "no payload"}


async def test_notices_are_kept_as_what_it_printed(app, limited):
    job = await run(app, limited, "civic.cleanup", {"days": 30})

    (attempt,) = await app.jobs.aattempts(job.id)
    assert attempt.stdout_tail == "NOTICE: removed what is older than 30 days\n"


async def test_functions_with_output_do_not_wait_for_each_others_connections(app, limited):
    await app.definitions.acreate("work", "sql", function="civic.cleanup", role=limited)
    handles = [await app.aenqueue("work", {"days": day}) for day in range(8)]

    async with working(app, pool_size=2):
        jobs = [await ended(handle) for handle in handles]

    assert {job.state for job in jobs} == {JobState.SUCCEEDED}


async def test_a_function_with_too_large_a_result_fails_for_good_and_nothing_stays(
    app, connection, limited
):
    job = await run(
        app, limited, "civic.cleanup", {"days": 1, "more": "x" * (1024 * 1024 - 40)}, max_attempts=3
    )

    assert job.state is JobState.FAILED
    assert "bytes, the limit is 1,048,576" in str(job.last_error)
    assert log(connection) == []


async def test_success_false_is_a_failed_attempt_and_what_was_written_stays(
    app, connection, limited
):
    job = await run(app, limited, "civic.says_no")

    assert job.state is JobState.DEAD_LETTER
    assert job.last_error == "the function returned success: false; the books are closed"
    assert log(connection) == ["says no"]
    (attempt,) = await app.jobs.aattempts(job.id)
    assert (attempt.error, attempt.stderr_tail) == (job.last_error, None)


async def test_an_error_is_a_failed_attempt_and_nothing_stays(app, connection, limited):
    job = await run(app, limited, "civic.breaks", {"divisor": 0})

    assert job.state is JobState.DEAD_LETTER
    assert job.last_error is not None
    assert job.last_error.startswith("division by zero (22012)\nwhere: ")
    assert log(connection) == []


async def test_an_answer_of_another_kind_is_shown(app, limited):
    job = await run(app, limited, "civic.wanders")

    assert job.last_error is not None
    assert job.last_error.startswith(
        'the function returned a string, "fine"; a function must return'
    )


async def test_a_failure_is_tried_again_after_the_backoff_of_its_definition(app, limited):
    await app.definitions.acreate("work", "sql", function="civic.says_no", role=limited)
    async with working(app):
        job = await retried(await app.aenqueue("work", {}))

    assert job.scheduled_for - job.created_at > timedelta(seconds=4)


async def test_a_role_cannot_do_what_it_must_not(app, limited):
    job = await run(app, limited, "civic.snoops")

    assert job.last_error is not None
    assert job.last_error.startswith("permission denied for table secrets (42501)")


@pytest.mark.parametrize(
    "statement",
    [
        "reset role",
        "set role postgres",
        "set session authorization default",
        "select set_config('role', 'none', false)",
        "reset session authorization",
        "set local role none",
    ],
)
async def test_a_function_cannot_get_back_the_rights_of_the_worker(app, limited, statement):
    job = await run(app, limited, "civic.climbs", {"statement": statement})

    assert job.state is JobState.DEAD_LETTER or job.result["message"] == limited, job


async def test_a_function_finds_its_own_schema_and_nothing_before_it(
    app, connection, limited, database_url
):
    """A function without a search path of its own finds its neighbours; a table of the same name
    in a schema that others may write to is not in the way."""
    connection.execute("create table public.log (line text)")

    await run(app, limited, "civic.cleanup", {"days": 1})

    assert log(connection) == ["cleanup 1"]
    assert connection.execute("select count(*) from public.log").fetchone() == (0,)


async def test_a_timeout_ends_it_in_the_server(app, connection, limited):
    job = await run(app, limited, "civic.sleeps", timeout=timedelta(seconds=0.5))

    (attempt,) = await app.jobs.aattempts(job.id)
    assert (job.state, attempt.status) == (JobState.DEAD_LETTER, AttemptStatus.TIMEOUT)
    assert not sleeping(connection)
    assert log(connection) == []


async def test_a_cancel_ends_it_in_the_server(app, connection, limited):
    await app.definitions.acreate("work", "sql", function="civic.sleeps", role=limited)
    async with working(app):
        handle = await app.aenqueue("work", {})
        await await_until(lambda: sleeping(connection))
        await app.jobs.acancel(handle.id)
        job = await ended(handle)

    assert job.state is JobState.CANCELED
    assert not sleeping(connection)
    assert log(connection) == []


async def test_a_change_of_the_definition_leaves_jobs_that_are_enqueued(app, connection, limited):
    await app.definitions.acreate("work", "sql", function="civic.cleanup", role=limited)
    before = await app.aenqueue("work", {"days": 1})
    state = await app.definitions.aupdate("work", function="civic.bare")
    after = await app.aenqueue("work", {"days": 2})

    async with working(app):
        first, second = await ended(before), await ended(after)

    assert state.version == 2
    assert (first.result["message"], second.result["message"]) == ("done", "no payload")
    assert log(connection) == ["cleanup 1"]


async def test_a_worker_that_runs_needs_no_restart_for_a_new_definition(app, limited):
    async with working(app):
        await app.definitions.acreate("work", "sql", function="civic.bare", role=limited)
        job = await ended(await app.aenqueue("work", {}))

    assert job.state is JobState.SUCCEEDED


async def test_an_inactive_definition_takes_no_jobs_and_finishes_those_it_has(app, limited):
    await app.definitions.acreate("work", "sql", function="civic.bare", role=limited)
    handle = await app.aenqueue("work", {})
    await app.definitions.adeactivate("work")

    async with working(app):
        assert (await ended(handle)).state is JobState.SUCCEEDED


async def test_a_schedule_fires_a_function(app, connection, limited):
    await app.definitions.acreate("work", "sql", function="civic.cleanup", role=limited)
    await app.schedules.acreate("nightly", "work", cron="@daily", payload={"days": 7})
    await app.schedules.atrigger("nightly")

    async with working(app):
        await await_until(lambda: log(connection) == ["cleanup 7"])
        await await_until(lambda: rows.count(connection, "jobs_history") == 1)


def sleeping(connection: psycopg.Connection) -> bool:
    query = (
        "select count(*) from pg_stat_activity"
        " where wait_event = 'PgSleep' and datname = current_database()"
    )
    return connection.execute(query).fetchone() != (0,)
