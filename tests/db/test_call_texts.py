"""What is sent for a call, and what is made of the errors that come back."""

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect

from mainspring.db import calls
from mainspring.db.calls import Call
from mainspring.domain.errors import InvalidPayload, JobNotFound
from mainspring.domain.errors.database import SchemaMissing
from tests.support.callers import JOBS, enqueue


@pytest.fixture
def noop(connection: psycopg.Connection) -> None:
    connection.execute("insert into mainspring.definitions (key, kind) values ('noop', 'python')")


def test_a_database_without_our_schema_is_told_from_one_with_it(database_url):
    with psycopg.connect(database_url) as own:
        own.execute("drop schema mainspring cascade")

        with pytest.raises(SchemaMissing):
            calls.run(own, enqueue())


def test_a_nul_in_the_payload_is_our_error(connection, noop):
    params = {"definition": "noop", "payload": '{"a": "\\u0000"}'}

    with pytest.raises(InvalidPayload, match="NUL"):
        calls.run(connection, Call(JOBS["enqueue"].sql, params))


def test_a_job_that_does_not_exist_is_our_error(connection):
    params = {"job_id": 404, "tenant_id": "default", "reason": None}

    with pytest.raises(JobNotFound, match="there is no job 404"):
        calls.run(connection, Call(JOBS["cancel"].sql, params))


def test_our_code_without_our_facts_is_someone_elses_error(connection):
    call = Call("select mainspring.refuse('MS020', 'a trigger of theirs')", {})

    with pytest.raises(psycopg.Error, match="a trigger of theirs"):
        calls.run(connection, call)


# The two ways to write a statement anew


@pytest.mark.parametrize(
    ("given", "expected", "names"),
    [
        ("%(a)s, %(b)s, %(a)s", "$1, $2, $1", ("a", "b")),
        ("%(a)s::text || ':' || 5 %% 2", "$1::text || ':' || 5 % 2", ("a",)),
        ("%(a)s::jsonb", "$1::text::jsonb", ("a",)),
        ("%(a)s::text[]::jsonb[]", "$1::text[]::jsonb[]", ("a",)),
        ("%(a)s::jsonb[]", "$1::jsonb[]", ("a",)),
        ("%(a)s::jsonbs", "$1::jsonbs", ("a",)),
        ("select 1", "select 1", ()),
    ],
)
def test_placeholders_become_numbers(given, expected, names):
    assert calls.with_numbers(given) == (expected, names)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("%(a)s::text", r" :a\:\:text"),
        ("%(a)s::jsonb", r" :a\:\:text\:\:jsonb"),
        ("':b' || 5 %% 2", r"'\:b' || 5 % 2"),
        ("x[1:%(a)s]", r"x[1\: :a]"),
    ],
)
def test_placeholders_become_names_after_colons(given, expected):
    assert calls.with_colons(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        *(statement.sql for statement in JOBS.values()),
        "select ':a', '::b', 'c:%%', '\\:', x[1:2], x[1:%(d)s], y := %(d)s, limit%(e)s",
    ],
)
def test_sqlalchemy_sends_what_was_written(given):
    text = sqlalchemy.text(calls.with_colons(given))
    sent = str(text.compile(dialect=psycopg_dialect.dialect()))

    assert "".join(sent.replace("::text::jsonb", "::jsonb").split()) == "".join(given.split())
