"""Definitions as rows: what is refused, what makes a version, what is told of a change."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.support.databases import role
from tests.support.rows import insert, not_becoming, refused

FUNCTIONS = """
create schema if not exists civic;
create function civic.cleanup(payload jsonb) returns jsonb language sql as $$ select payload $$;
create function civic.bare() returns jsonb language sql as $$ select '{}'::jsonb $$;
create function civic.other(payload integer) returns jsonb language sql as $$ select '1'::jsonb $$;
create function civic."Odd; name"() returns jsonb language sql as $$ select '{}'::jsonb $$;
create function civic.many() returns setof jsonb language sql as $$ select '{}'::jsonb $$;
create function civic.silent(payload jsonb) returns void language sql as $$ select 1 $$;
create procedure civic.acts() language sql as $$ select 1 $$;
"""
NOT_A_NAME = "{} is not the name of a function; write it as schema.name, without arguments"
SPEC = "must be {} or have a number as revision: a remote worker knows what it runs"
NO_SCHEMA = "{} needs its schema and nothing else: write it as schema.name"


@pytest.fixture
def civic(tx: psycopg.Connection) -> psycopg.Connection:
    tx.execute(FUNCTIONS)
    return tx


@pytest.fixture(scope="module")
def someone(module_url: str) -> Iterator[str]:
    with role(module_url) as name:
        yield name


def add(connection: psycopg.Connection, key: str = "cleanup", **columns: Any) -> None:
    row = {"kind": "sql", "spec": Jsonb({"function": "civic.cleanup"}), **columns}
    insert(connection, "definitions", key=key, **row)


def read(connection: psycopg.Connection, column: str, key: str = "cleanup") -> Any:
    query = sql.SQL("select {} from mainspring.definitions where key = %s")
    ((value,),) = connection.execute(query.format(sql.Identifier(column)), (key,)).fetchall()
    return value


def refuses(connection: psycopg.Connection, field: str, problem: str, key: str = "cleanup") -> Any:
    return refused(connection, "MS050", field, key=key, field=field, problem=problem)


# What is refused


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("civic.gone", "{} does not exist; create it"),
        ("cleanup", NO_SCHEMA + "; did you mean civic.cleanup?"),
        ("a.b.c", NO_SCHEMA),
        ("civic.other", "{} takes (payload integer); it must take one jsonb or nothing"),
        ("civic.acts", "{} is a procedure; make it a function that returns jsonb"),
        ("civic.many", "{} returns a set of jsonb; it must return one jsonb"),
        ("civic.silent", "{} returns void; it must return jsonb"),
        ("civic.cleanup(jsonb)", NOT_A_NAME),
        ("civic.cleanup()", NOT_A_NAME),
        ("civic.cleanup; drop table civic.log", NOT_A_NAME),
        ("civic.cleanup'; --", NOT_A_NAME),
        ('civic."cleanup', NOT_A_NAME),
        (" ", NOT_A_NAME),
        ("pg_catalog.pg_sleep", "{} returns void; it must return jsonb"),
        ("pg_catalog.now", "{} returns timestamp with time zone; it must return jsonb"),
        ("pg_catalog.pg_reload_conf", "{} returns boolean; it must return jsonb"),
        ("pg_catalog.max", "{} is an aggregate or window function"),
    ],
)
def test_a_name_that_is_no_function_for_jobs_is_refused(civic, name, problem):
    with refuses(civic, "function", problem.format(name)):
        add(civic, spec=Jsonb({"function": name}))


@pytest.mark.parametrize("spec", [{}, {"function": ""}, {"function": None}])
def test_a_sql_definition_needs_a_function(civic, spec):
    problem = "is missing; give the name of a function, such as civic.cleanup"
    with refuses(civic, "function", problem):
        add(civic, spec=Jsonb(spec))


@pytest.mark.parametrize("name", ["civic.cleanup", "civic.bare", 'civic."Odd; name"', "CIVIC.Bare"])
def test_a_function_may_be_named_as_sql_names_it(civic, name):
    add(civic, spec=Jsonb({"function": name}))

    assert read(civic, "spec")["function"] == name


@pytest.mark.parametrize("key", ["", "9lives", "with space", "a" * 201, "semi;colon", "-x"])
def test_a_key_that_could_not_be_typed_is_refused(civic, key):
    with refused(civic, "MS050", "must start with a letter", key=key, field="key", problem=KEY):
        add(civic, key)


KEY = (
    "must start with a letter or _ and contain only letters, digits and _ . : - (at most 200 "
    "characters)"
)


def test_a_role_that_is_not_there_is_refused(civic):
    with refuses(civic, "role", "nobody_at_all does not exist; create it, or name another role"):
        add(civic, spec=Jsonb({"function": "civic.cleanup", "role": "nobody_at_all"}))


def test_nobody_has_a_function_run_under_a_role_that_is_not_theirs(civic, someone):
    owner = civic.info.user
    names = {"someone": sql.Identifier(someone)}
    for grant in (
        "grant usage on schema mainspring to {someone}",
        "grant insert, update, select on mainspring.definitions to {someone}",
        "grant usage on schema civic to {someone}",
        "set local role {someone}",
    ):
        civic.execute(sql.SQL(grant).format(**names))

    with refuses(civic, "role", not_becoming(someone, owner)):
        add(civic, spec=Jsonb({"function": "civic.cleanup", "role": owner}))
    add(civic)

    assert read(civic, "spec")["role"] == someone


def test_a_definition_keeps_its_kind(civic):
    add(civic)

    with refuses(civic, "kind", "is sql and cannot be changed"):
        civic.execute("update mainspring.definitions set kind = 'python'")


def test_a_kind_that_there_is_not_is_refused(civic):
    with refuses(civic, "kind", "must be python, sql, command or remote, not 'remot'"):
        add(civic, kind="remot")


def test_a_remote_definition_has_no_spec(civic):
    add(civic, kind="remote", spec=Jsonb({}))
    with refuses(civic, "spec", SPEC, "x"):
        add(civic, "x", kind="remote", spec=Jsonb({"function": "civic.bare"}))


def test_the_role_is_that_of_the_writer_unless_named(civic, someone):
    add(civic)
    add(civic, "another", spec=Jsonb({"function": "civic.cleanup", "role": someone}))

    assert read(civic, "spec")["role"] == civic.info.user
    assert read(civic, "spec", "another")["role"] == someone


# Versions


@pytest.mark.parametrize(
    "change",
    [
        "timeout = '1 minute'",
        "backoff_base = '1 minute'",
        "backoff_factor = 3",
        "backoff_cap = '1 hour'",
        "backoff_jitter = '0'",
        "arg_schema = '{}'",
        """spec = '{"function": "civic.bare"}'""",
    ],
)
def test_what_decides_how_a_job_runs_makes_a_version(civic, change):
    add(civic)

    civic.execute(f"update mainspring.definitions set {change} where key = 'cleanup'")

    assert read(civic, "version") == 2
    kept = "select version from mainspring.definition_versions where key = 'cleanup' order by 1"
    assert civic.execute(kept).fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    "change",
    [
        "description = 'x'",
        "queue = 'slow'",
        "priority = 1",
        "max_attempts = 9",
        "tags = '{a}'",
        "retention = '1 day'",
        "is_active = false",
        "timeout = timeout",
    ],
)
def test_anything_else_keeps_the_version(civic, change):
    add(civic)

    civic.execute(f"update mainspring.definitions set {change} where key = 'cleanup'")

    assert read(civic, "version") == 1


def test_a_definition_that_was_deleted_goes_on_with_its_versions(civic):
    add(civic)
    civic.execute("delete from mainspring.definitions where key = 'cleanup'")
    add(civic, timeout="5 minutes")

    assert read(civic, "version") == 2


def test_a_version_is_kept_as_it_was(civic):
    add(civic, timeout="5 minutes")
    civic.execute("update mainspring.definitions set timeout = '1 minute' where key = 'cleanup'")

    query = (
        "select timeout::text, spec ->> 'function' from mainspring.definition_versions"
        " where key = 'cleanup' order by version"
    )
    assert civic.execute(query).fetchall() == [
        ("00:05:00", "civic.cleanup"),
        ("00:01:00", "civic.cleanup"),
    ]


ENQUEUES = {
    "plainly": "select mainspring.enqueue('cleanup')",
    "with a key": "select mainspring.enqueue('cleanup', dedupe_key => 'a')",
    "in bulk": "select mainspring.enqueue_many('cleanup', array['{}'::jsonb])",
}


@pytest.mark.parametrize("statement", ENQUEUES.values(), ids=ENQUEUES)
def test_a_job_has_the_version_it_was_enqueued_under(civic, statement):
    add(civic)
    civic.execute("update mainspring.definitions set timeout = '1 minute' where key = 'cleanup'")

    civic.execute(statement)

    found = civic.execute("select definition_version from mainspring.job_status").fetchall()
    assert found == [(2,)]


# What is told


def test_changes_are_in_the_audit(civic):
    add(civic)
    civic.execute("update mainspring.definitions set queue = 'slow' where key = 'cleanup'")
    civic.execute("update mainspring.definitions set is_active = false where key = 'cleanup'")
    civic.execute("update mainspring.definitions set queue = queue where key = 'cleanup'")
    civic.execute("delete from mainspring.definitions where key = 'cleanup'")

    told = civic.execute(
        "select action, before -> 'queue', after -> 'queue' from mainspring.audit"
        " where noun = 'definition' and subject = 'cleanup' order by audit_id"
    ).fetchall()
    assert told == [
        ("create", None, "default"),
        ("update", "default", "slow"),
        ("deactivate", None, None),
        ("delete", "slow", None),
    ]
