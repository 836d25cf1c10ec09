"""Conditions that try to do more than to read what their role may read."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg import sql

from mainspring import Mainspring
from tests.support import schedules
from tests.support.databases import (
    EITHER_LOGIN,
    create_as_owner,
    owned_database,
    role,
    same_database,
)
from tests.support.schedules import insert_due, scheduling
from tests.support.waiting import await_until

SCHEMA = """
create schema civic;
create table civic.loot (who text);
create table civic.secrets as select 'hunter2' as word;
create function civic.take() returns boolean language plpgsql as $$
begin
    insert into civic.loot values (current_user);
    return true;
end $$;
create function civic.does(statement text) returns boolean language plpgsql as $$
begin
    execute statement;
    return true;
end $$;
"""
# What must never be, whoever wrote the condition and however Mainspring logs in.
ATTACKS = [
    "copy (select 1) to program 'touch {file}'",
    "copy (select true) to '{file}'",
    "do $$ begin perform civic.take(); end $$",
    "select true; copy (select 1) to program 'touch {file}'",
    "select true) as a; select civic.take(); select (true",
    "select true) as a, (select civic.take()",
    "create table civic.more (x integer)",
    "with gone as (delete from civic.secrets returning true) select * from gone",
    "insert into civic.loot values ('me') returning true",
    "select civic.take()",
    "select civic.does('set transaction read write; select civic.take()')",
    "select civic.does('commit')",
    "select civic.does('copy (select 1) to program ''touch {file}''')",
    "select set_config('role', 'postgres', false) is not null and civic.take()",
    "select set_config('session_authorization', 'postgres', false) is not null and civic.take()",
    "select lo_export(0, '{file}') > 0",
    "explain analyze select civic.take()",
]
# What only leaves something behind.
LEFTOVERS = [
    "select civic.does('declare kept cursor with hold for select civic.take()')",
    "select set_config('default_transaction_read_only', 'on', false) = 'on'",
    "select pg_advisory_lock(4711) is null",
    "select civic.does('listen mainspring')",
]


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
def limited(
    server_url: str, database_url: str, connection: psycopg.Connection, app: Mainspring
) -> Iterator[str]:
    create_as_owner(connection, SCHEMA)
    with role(same_database(server_url, database_url)) as name:
        grants = sql.SQL(
            "grant usage on schema civic to {0}; grant insert on civic.loot to {0}"
        ).format(sql.Identifier(name))
        connection.execute(grants)
        yield name
        connection.execute("delete from mainspring.schedules")


def is_there(path: Path) -> bool:
    return path.exists()


def outcomes(connection: psycopg.Connection) -> dict[str, str]:
    """Of the slots that are decided, by the name of the schedule."""
    query = "select name, outcome::text from mainspring.slot_status where outcome <> 'pending'"
    return dict(connection.execute(query).fetchall())


@pytest.fixture
def mark() -> Iterator[Path]:
    """A file that the server could write, whoever runs it."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder) / "mark"


@EITHER_LOGIN
@pytest.mark.parametrize("is_owner", [True, False], ids=["owner", "role"])
async def test_a_condition_can_only_read(app, connection, limited, mark: Path, is_owner):
    for number, attack in enumerate(ATTACKS):
        spec = {} if is_owner else {"condition_role": limited}
        text = attack.replace("{file}", str(mark))
        insert_due(connection, f"attack {number}", condition_sql=text, **spec)
    async with scheduling(app):
        await await_until(lambda: len(outcomes(connection)) == len(ATTACKS))

    seen = outcomes(connection)
    ran = [each for number, each in enumerate(ATTACKS) if seen[f"attack {number}"] != "failed"]
    assert ran == []
    assert not is_there(mark)
    assert connection.execute("select * from civic.loot").fetchall() == []


@EITHER_LOGIN
@pytest.mark.parametrize("is_owner", [True, False], ids=["owner", "role"])
async def test_a_condition_leaves_nothing_behind(app, connection, limited, is_owner):
    for number, attack in enumerate(LEFTOVERS):
        spec = {} if is_owner else {"condition_role": limited}
        insert_due(connection, f"attack {number}", condition_sql=attack, **spec)
    async with scheduling(app):
        await await_until(lambda: len(outcomes(connection)) == len(LEFTOVERS))
        insert_due(connection, condition_sql="select true")
        await await_until(lambda: schedules.slots(connection))
        assert schedules.outcomes(connection) == ["enqueued"]
        assert connection.execute("select pg_try_advisory_lock(4711)").fetchone() == (True,)

    assert connection.execute("select * from civic.loot").fetchall() == []


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("select civic.take()", "the condition tried to write"),
        ("select pg_sleep(9)", "the condition did not finish within 0.2 s"),
        ("select true; select true", "the condition failed: cannot insert multiple commands"),
        ("commit", 'the condition failed: syntax error at or near "commit"'),
        ("select pg_terminate_backend(pg_backend_pid())", "the condition failed: "),
        ("select 'yes'", "condition_sql: returned str 'yes'; it must return a boolean or a number"),
        ("select word from civic.secrets", "the condition failed: permission denied for table"),
    ],
)
async def test_a_failure_says_what_was_wrong(app, connection, limited, condition, reason):
    insert_due(
        connection, condition_sql=condition, condition_role=limited, condition_timeout="0.2 seconds"
    )
    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection) == ["failed"])

    assert schedules.slots(connection)[0]["reason"].startswith(reason)


@pytest.mark.parametrize("condition", ["select true;", "values (1), (0)", "select 5 % 2, '%s {x}'"])
async def test_a_condition_of_a_role_may_be_any_query(app, connection, limited, condition):
    insert_due(connection, condition_sql=condition, condition_role=limited)
    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection) == ["enqueued"])


async def test_a_condition_of_the_owner_reads_everything(app, connection, limited):
    insert_due(connection, condition_sql="select word = 'hunter2' from civic.secrets")
    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection) == ["enqueued"])


async def test_a_role_that_cannot_log_in_fails_the_check_with_what_to_do(app, connection, limited):
    connection.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(limited)))
    insert_due(connection, condition_sql="select true", condition_role=limited)
    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection) == ["failed"])

    reason = schedules.slots(connection)[0]["reason"]
    assert reason.startswith(f"the condition failed: cannot log in as {limited}: role ")
    assert reason.endswith(
        f"`alter role {limited} login` and add {limited}=URL to the setting role_urls"
    )
