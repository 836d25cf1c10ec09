"""The reader of query files: what it accepts, and what it says of a file it refuses."""

import re

import pytest

from mainspring.db import statements
from mainspring.db.statements import Scope, Statement, StatementError

ORIGIN = "jobs.sql"
HEADER = "-- name: peek\n-- scope: tenant\n-- Looks without touching.\n"
TWO = """\
-- Jobs: the file may open with words of its own.

-- name: peek
-- scope: tenant
-- Looks without touching,
-- so it takes no lock.
select *
  from mainspring.jobs
 where job_id = %(job_id)s;

-- name: count_all
-- scope: system
-- Counts every tenant's jobs.
select count(*) from mainspring.jobs;
"""


def only(body: str) -> str:
    return statements.parse(HEADER + body, ORIGIN)["peek"].sql


def test_a_statement_is_read_with_its_name_scope_prose_and_sql():
    assert statements.parse(TWO, ORIGIN)["peek"] == Statement(
        name="peek",
        scope=Scope.TENANT,
        prose="Looks without touching, so it takes no lock.",
        sql="select *\n  from mainspring.jobs\n where job_id = %(job_id)s",
    )


def test_a_catalogue_keeps_the_order_of_its_file():
    catalogue = statements.parse(TWO, ORIGIN)

    assert list(catalogue) == ["peek", "count_all"]
    assert len(catalogue) == 2
    assert catalogue["count_all"].scope is Scope.SYSTEM


def test_a_file_without_statements_is_an_empty_catalogue():
    assert len(statements.parse("-- Nothing yet.\n\n", ORIGIN)) == 0


def test_an_unknown_name_is_a_key_error_with_the_nearest_name():
    catalogue = statements.parse(TWO, ORIGIN)

    with pytest.raises(KeyError, match=r"jobs\.sql has no statement 'peak'; did you mean 'peek'"):
        catalogue["peak"]
    assert "peak" not in catalogue
    assert catalogue.get("peak") is None


@pytest.mark.parametrize(
    ("body", "sql"),
    [
        pytest.param("select 1 -- one\n     , 2;", "select 1\n     , 2", id="end of a line"),
        pytest.param("select 1\n  -- ; 'quoted'\n     , 2;", "select 1\n     , 2", id="own line"),
        pytest.param("select 1; -- done\n-- really\n", "select 1", id="after the end"),
        pytest.param("select '--' -- two\n;", "select '--'", id="beside a literal"),
    ],
)
def test_comments_inside_a_statement_are_not_sent(body, sql):
    assert only(body) == sql


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("select '-- no comment; no end'", id="string"),
        pytest.param("select 'it''s; --'", id="doubled quote"),
        pytest.param(r"select E'it\'s; --'", id="escape string"),
        pytest.param('select 1 as "a; -- b"', id="quoted name"),
        pytest.param("do $$ begin; -- kept\n\n end $$", id="dollar quotes"),
        pytest.param("do $body$ select $$;$$; $body$", id="tagged dollar quotes"),
        pytest.param("select 'two\n\n-- lines;'", id="string over lines"),
        pytest.param("select payload->>'n', - -1 from jobs", id="operators"),
        pytest.param("select %(n)s %% 2, 'a%%', %(raw)b, %(job_id)s::text[]", id="placeholders"),
    ],
)
def test_literals_and_operators_are_sent_as_written(sql):
    assert only(f"{sql};") == sql


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param("\nselect 1;", 2, "must start with '-- name:", id="no header"),
        pytest.param("-- nmae: a\n-- scope: tenant\nselect 1;", 3, "must start", id="misspelt"),
        pytest.param("-- name: Peek\n", 1, "'Peek' is not snake_case", id="capital"),
        pytest.param("-- name: peek_\n", 1, "'peek_' is not snake_case", id="trailing underscore"),
        pytest.param("-- name:\n", 1, "'' is not snake_case", id="no name"),
        pytest.param("-- name: peek\nselect 1;", 2, "must follow the name", id="no scope"),
        pytest.param("-- name: peek", 2, "must follow the name", id="end of file"),
        pytest.param("-- name: a\n-- scope: all\n", 2, "scope 'all' is neither", id="bad scope"),
        pytest.param("-- name: a\n-- scope: tenant\nselect 1;", 3, "line of prose", id="no prose"),
        pytest.param("-- name: a\n-- scope: tenant\n--\nselect 1;", 3, "prose", id="empty prose"),
        pytest.param(HEADER + "select 1\n", 1, "does not end with ';'", id="no end"),
        pytest.param(HEADER, 1, "does not end with ';'", id="no statement"),
        pytest.param(HEADER + ";", 4, "is empty", id="empty statement"),
        pytest.param(HEADER + "select 1;\nselect 2;", 5, "second statement", id="two at once"),
        pytest.param(HEADER + "select 1; -- x\n\n2;", 6, "second statement", id="late second"),
        pytest.param(HEADER + "select\n /* */ 1;", 5, "block comment", id="block comment"),
        pytest.param(HEADER + "select\n'a;", 5, "quote is not closed", id="open quote"),
        pytest.param(HEADER + 'select\n"a;', 5, "quote is not closed", id="open name"),
        pytest.param(HEADER + "select\n%s;", 5, "part of a placeholder", id="positional"),
        pytest.param(HEADER + "select 5 % 2;", 4, "part of a placeholder", id="bare percent"),
        pytest.param(HEADER + "select\n -- %\n 'a%';", 6, "must be doubled", id="quoted percent"),
        pytest.param(HEADER + "select '%(a)s';", 4, "must be doubled", id="quoted placeholder"),
        pytest.param(HEADER + "select 1;\n" + HEADER + "select 2;", 5, "another", id="same name"),
    ],
)
def test_a_malformed_file_is_refused_at_its_line(text, line, problem):
    with pytest.raises(StatementError, match=re.escape(problem)) as caught:
        statements.parse(text, ORIGIN)

    assert str(caught.value).startswith(f"jobs.sql:{line}: ")
    assert (caught.value.origin, caught.value.line) == (ORIGIN, line)


def test_a_noun_without_a_file_is_refused_by_the_files_name():
    with pytest.raises(StatementError, match=r"^sql/queries/no_such_noun\.sql:1: there is no such"):
        statements.load("no_such_noun")
