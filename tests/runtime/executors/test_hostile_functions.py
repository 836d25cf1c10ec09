"""SQL functions that try to get at the rights, or into the way, of the worker that runs them."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from mainspring import Job, JobState, Mainspring
from mainspring.domain.errors import InvalidDefinition
from mainspring.settings import load
from tests.support import rows
from tests.support.databases import (
    EITHER_LOGIN,
    create_as_owner,
    owned_database,
    owner_of,
    role,
    same_database,
)
from tests.support.waiting import await_until
from tests.support.workers import ended, working

SCHEMA = """
create schema civic;
create table civic.loot (who text);
create table civic.log (line text);
create function civic.take(value text) returns boolean language plpgsql as $$
begin
    insert into civic.loot values (current_user);
    return true;
end $$;
create function civic.fine() returns jsonb language sql
    as $$ insert into civic.log values ('fine'); select '{"success": true}'::jsonb $$;
create function civic.holds() returns jsonb language plpgsql as $$
begin
    execute 'declare kept cursor with hold for select civic.take(null)';
    return '{"success": true}';
end $$;
create function civic.hides_types() returns jsonb language plpgsql as $$
begin
    create domain pg_temp.text as pg_catalog.text check (civic.take(value));
    create domain pg_temp.jsonb as pg_catalog.jsonb check (civic.take(value::pg_catalog.text));
    create domain pg_temp.int8 as pg_catalog.int8 check (civic.take(value::pg_catalog.text));
    return '{"success": true}';
end $$;
create function civic.trapped() returns trigger language plpgsql as $$
begin
    perform civic.take(null);
    return null;
end $$;
create table civic.trap (x integer);
create constraint trigger trap after insert on civic.trap deferrable initially deferred
    for each row execute function civic.trapped();
create function civic.defers() returns jsonb language plpgsql as $$
begin
    insert into civic.trap values (1);
    return '{"success": true}';
end $$;
create function civic.poisons() returns jsonb language plpgsql as $$
begin
    perform set_config(name, value, false)
       from (values ('default_transaction_read_only', 'on'), ('search_path', 'nowhere'),
                    ('default_transaction_isolation', 'serializable'),
                    ('row_security', 'off'), ('client_min_messages', 'error'),
                    ('TimeZone', 'Asia/Kathmandu'), ('mainspring.actor', 'mallory'))
            as setting (name, value);
    perform pg_advisory_lock(4711);
    execute 'create temp table jobs (x integer)';
    return '{"success": true}';
end $$;
create function civic.whoami() returns jsonb language sql as $$
    select jsonb_build_object('success', true, 'current', current_user, 'session', session_user) $$;
"""
GRANTS = """
grant usage on schema civic to {role};
grant insert on all tables in schema civic to {role};
grant {role} to {owner};
"""


@pytest.fixture
def database_url(request: pytest.FixtureRequest, server_url: str) -> Iterator[str]:
    """For Mainspring's login; a superuser unless a test asks for an ordinary owner."""
    if getattr(request, "param", "superuser") == "superuser":
        yield request.getfixturevalue("mainspring_database_url")
    else:
        with owned_database(server_url) as url:
            yield url


@pytest.fixture
def connection(database_url: str, server_url: str) -> Iterator[psycopg.Connection]:
    """A superuser in the same database, whoever owns it."""
    with psycopg.connect(same_database(server_url, database_url), autocommit=True) as connection:
        yield connection


@pytest.fixture
def limited(server_url: str, database_url: str, connection: psycopg.Connection) -> Iterator[str]:
    """A role that may call the functions and write to their tables, and nothing else."""
    create_as_owner(connection, SCHEMA)
    with role(same_database(server_url, database_url)) as name:
        names = {"role": sql.Identifier(name), "owner": sql.Identifier(owner_of(connection))}
        connection.execute(sql.SQL(GRANTS).format(**names))
        yield name


@pytest.fixture
async def app(database_url: str, limited: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


async def run(app: Mainspring, role: str, function: str, **fields: Any) -> Job:
    """A job of a definition of the function, once it is over."""
    await app.definitions.acreate(
        "work", "sql", function=function, role=role, max_attempts=1, **fields
    )
    async with working(app):
        return await ended(await app.aenqueue("work", {}))


def loot(connection: psycopg.Connection) -> set[str]:
    """Under whose rights something was taken."""
    return {who for (who,) in connection.execute("select who from civic.loot")}


@EITHER_LOGIN
@pytest.mark.parametrize("function", ["civic.holds", "civic.hides_types", "civic.defers"])
async def test_what_a_function_leaves_for_later_never_runs_as_the_worker(
    app, connection, limited, function
):
    job = await run(app, limited, function)

    assert job.is_final
    assert loot(connection) <= {limited}


@EITHER_LOGIN
async def test_a_function_is_logged_in_as_its_role(app, limited):
    job = await run(app, limited, "civic.whoami")

    assert job.result == {"success": True, "current": limited, "session": limited}


@EITHER_LOGIN
async def test_what_a_function_sets_for_its_session_reaches_nobody_else(app, connection, limited):
    await app.definitions.acreate("poison", "sql", function="civic.poisons", role=limited)
    await app.definitions.acreate("work", "sql", function="civic.fine", role=limited)
    async with working(app):
        for key in ("poison", "work", "poison", "work"):
            job = await ended(await app.aenqueue(key, {}))
            assert job.state is JobState.SUCCEEDED, job.last_error

    assert connection.execute("select pg_try_advisory_lock(4711)").fetchone() == (True,)
    assert connection.execute("select count(*) from civic.log").fetchone() == (2,)


# Roles that cannot log in, and roles with the rights of the owner


@pytest.fixture
def group(connection: psycopg.Connection, limited: str) -> str:
    """A role that nobody can log in as."""
    connection.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(limited)))
    return limited


REFUSAL = "cannot log in as {}: .*; run `alter role {} login` and add {}=URL to the setting role_"


async def test_a_role_that_cannot_log_in_is_refused_when_it_is_named(app, group):
    said = REFUSAL.format(group, group, group)
    with pytest.raises(InvalidDefinition, match=f"work: {said}urls, or set trusted on"):
        await app.definitions.acreate("work", "sql", function="civic.fine", role=group)
    await app.definitions.acreate("work", "sql", function="civic.fine")
    with pytest.raises(InvalidDefinition, match=said):
        await app.definitions.aupdate("work", role=group)


async def test_a_role_that_can_no_longer_log_in_fails_the_job_and_runs_nothing(
    app, connection, limited
):
    await app.definitions.acreate(
        "work", "sql", function="civic.fine", role=limited, max_attempts=1
    )
    connection.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(limited)))
    async with working(app):
        job = await ended(await app.aenqueue("work", {}))

    assert re.search(REFUSAL.format(limited, limited, limited), job.last_error or "")
    assert connection.execute("select count(*) from civic.log").fetchone() == (0,)


async def test_a_trusted_definition_runs_through_our_login_on_a_connection_of_its_own(
    app, connection, group
):
    job = await run(app, group, "civic.whoami", trusted=True)
    owner = connection.info.user

    assert job.result == {"success": True, "current": group, "session": owner}


@EITHER_LOGIN
async def test_what_a_trusted_function_leaves_for_later_runs_as_its_role_or_not_at_all(
    app, connection, group
):
    for function in ("civic.holds", "civic.hides_types", "civic.defers", "civic.poisons"):
        key = function.partition(".")[2]
        await app.definitions.acreate(
            key, "sql", function=function, role=group, trusted=True, max_attempts=1
        )
    async with working(app):
        for key in ("holds", "hides_types", "defers", "poisons", "defers"):
            assert (await ended(await app.aenqueue(key, {}))).state is JobState.SUCCEEDED

    assert loot(connection) <= {group}


async def test_a_login_of_its_own_may_stand_for_a_role(app, connection, database_url, group):
    with role(database_url) as login:
        names = {"role": sql.Identifier(group), "login": sql.Identifier(login)}
        connection.execute(sql.SQL("grant {role} to {login}").format(**names))
        url = urls(database_url, **{group: login})
        app.use(load(database_url=database_url, role_urls=url))
        await app.definitions.acreate("work", "sql", function="civic.whoami", role=group)
        async with working(app, role_urls=url):
            job = await ended(await app.aenqueue("work", {}))

    assert job.result == {"success": True, "current": group, "session": login}


async def test_the_owner_cannot_stand_for_a_role_without_being_trusted(
    app, connection, database_url, group
):
    url = urls(database_url, **{group: connection.info.user})
    app.use(load(database_url=database_url, role_urls=url))
    await app.definitions.acreate("work", "sql", function="civic.fine", role=group, max_attempts=1)
    async with working(app, role_urls=url):
        job = await ended(await app.aenqueue("work", {}))

    assert "logs in with the rights of Mainspring's owner" in (job.last_error or "")
    assert connection.execute("select count(*) from civic.log").fetchone() == (0,)


def urls(database_url: str, **logins: str) -> str:
    """The setting, of login names by role."""
    at = urlsplit(database_url)
    rest = at.netloc.rpartition("@")[2]
    return " ".join(
        f"{role}={urlunsplit(at._replace(netloc=f'{login}:{login}@{rest}'))}"
        for role, login in logins.items()
    )


async def test_the_owner_runs_only_functions_that_nobody_else_can_change(app, connection, limited):
    owner = connection.info.user
    await app.definitions.acreate("work", "sql", function="civic.whoami", max_attempts=1)
    names = {"role": sql.Identifier(limited)}
    connection.execute(sql.SQL("alter function civic.whoami() owner to {role}").format(**names))

    said = f"{owner} has the rights of the owner of Mainspring, and civic.whoami can be changed"
    with pytest.raises(InvalidDefinition, match=said):
        await app.definitions.acreate("more", "sql", function="civic.whoami")
    async with working(app):
        job = await ended(await app.aenqueue("work", {}))
    assert said in (job.last_error or "")


async def test_the_owner_runs_nothing_of_a_schema_that_is_another_ones(app, connection, limited):
    connection.execute(sql.SQL("alter schema civic owner to {}").format(sql.Identifier(limited)))

    with pytest.raises(InvalidDefinition, match=r"civic\.whoami can be changed by others"):
        await app.definitions.acreate("work", "sql", function="civic.whoami")
    await app.definitions.acreate("work", "sql", function="civic.whoami", trusted=True)
    connection.execute("alter schema civic owner to current_user")


def test_only_the_owner_trusts_a_definition(connection, database_url, limited):
    connection.execute(
        sql.SQL(
            "grant usage on schema mainspring to {role};"
            "grant insert, select on mainspring.definitions to {role}"
        ).format(role=sql.Identifier(limited))
    )
    with psycopg.connect(database_url, user=limited, autocommit=True) as theirs:
        insert = "insert into mainspring.definitions (key, kind, spec) values ('x', 'sql', %s)"
        spec = {"function": "civic.fine", "trusted": True}
        with pytest.raises(psycopg.Error, match="trusted: can only be set by the owner"):
            theirs.execute(insert, (Jsonb(spec),))
        theirs.execute(insert, (Jsonb({**spec, "trusted": False}),))


# Receipts


async def test_an_answer_that_is_too_large_is_a_failure_and_never_sent(app, connection, limited):
    connection.execute(
        "create function civic.floods() returns jsonb language sql as $$"
        " insert into civic.log values ('flood');"
        " select jsonb_build_object('success', true, 'x', repeat('x', 1048576)) $$"
    )
    job = await run(app, limited, "civic.floods")

    assert (job.last_error or "").startswith("the function returned 1,048,602 bytes, the limit is")
    assert connection.execute("select count(*) from civic.log").fetchone() == (0,)


def test_nobody_writes_a_receipt_without_the_token(connection, database_url, limited):
    with psycopg.connect(database_url, user=limited, autocommit=True) as theirs:
        call = "select mainspring_calls.record_receipt(1, 1, %s, '{}')"
        for token in (b"", b"\0" * 32, None):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="the token is not"):
                theirs.execute(call, (token,))
        for secret in ("installation_keys", "receipts"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                theirs.execute(sql.SQL("table mainspring.{}").format(sql.Identifier(secret)))


async def test_receipts_go_when_their_jobs_have_ended(app, connection, limited):
    await run(app, limited, "civic.fine")
    async with working(app):
        await ended(await app.aenqueue("work", {}))

    assert connection.execute("select job_id from mainspring.receipts").fetchall() == [(2,)]


# Identity


@EITHER_LOGIN
async def test_a_function_cannot_act_as_somebody_else(app, connection, limited):
    connection.execute(
        sql.SQL(
            "create function civic.votes(payload jsonb) returns jsonb language plpgsql as $$ begin"
            "  perform set_config('mainspring.actor', 'mallory', false),"
            "          set_config('mainspring.approver', '{{role:admin}}', false),"
            "          set_config('mainspring.creator', 'mallory', false);"
            "  perform mainspring.approve((payload ->> 'job')::bigint);"
            "  perform mainspring.enqueue('gated');"
            "  return '{{\"success\": true}}'; end $$;"
            "grant usage on schema mainspring to {role};"
            "grant execute on function mainspring.approve, mainspring.enqueue to {role}"
        ).format(role=sql.Identifier(limited))
    )
    await app.definitions.acreate(
        "gated", "sql", function="civic.fine", approvals_needed=2, approvers=[limited, "mallory"]
    )
    await app.definitions.acreate("vote", "sql", function="civic.votes", role=limited)
    gated = await app.aenqueue("gated", {})
    async with working(app):
        for _ in range(2):
            job = await ended(await app.aenqueue("vote", {"job": gated.id}))
            assert job.state is JobState.SUCCEEDED, job.last_error

    votes = connection.execute("select actor from mainspring.votes").fetchall()
    assert votes == [(f"sql:{limited}",)]
    creators = connection.execute("select distinct created_by from mainspring.jobs").fetchall()
    assert creators == [(None,)]


# Connections


async def test_the_defaults_of_a_role_do_not_keep_its_receipts_from_being_written(
    app, connection, limited
):
    for setting in (
        "default_transaction_read_only = on",
        "default_transaction_isolation = serializable",
    ):
        connection.execute(
            sql.SQL(f"alter role {{}} set {setting}").format(sql.Identifier(limited))
        )
    job = await run(app, limited, "civic.fine")

    assert job.state is JobState.SUCCEEDED, job.last_error


async def test_a_worker_opens_few_connections_for_functions(app, connection, limited):
    connection.execute(
        "create function civic.naps() returns jsonb language sql as"
        """ $$ select pg_sleep(0.2); select '{"success": true}'::jsonb $$"""
    )
    await app.definitions.acreate("nap", "sql", function="civic.naps", role=limited)
    await app.aenqueue_many("nap", [{}] * 30)
    seen: list[int] = []

    def are_done() -> bool:
        seen.append(sessions(connection, limited))
        return rows.count(connection, "jobs") == 0

    async with working(app, concurrency=100):
        await await_until(are_done)

    assert 1 < max(seen) <= 20


def sessions(connection: psycopg.Connection, name: str) -> int:
    query = "select count(*) from pg_stat_activity where usename = %s"
    ((count,),) = connection.execute(query, (name,)).fetchall()
    return int(count)
