"""SQL scripts in statements: split where a statement ends and nowhere else."""

import pytest

from mainspring.db import migrate, scripts

FUNCTION = "create or replace function f() returns text language sql as $body$ select ';'; $body$;"


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("", 0),
        ("-- only a comment; nothing else\n", 0),
        ("select 1", 1),
        ("select 1; select 2;", 2),
        ("select ';'; select 'it''s; fine';", 2),
        ('select ";" from "a;b"; select 1;', 2),
        ("select 1 -- not; here\n + 1;", 1),
        ("/* nor; here */ select 1;", 1),
        (f"{FUNCTION} do $$ begin perform 1; end $$;", 2),
    ],
)
def test_a_script_is_split_into_its_statements(script, count):
    found = list(scripts.statements(script))

    assert len(found) == count
    assert all(statement in script for statement in found)


def test_the_statements_of_our_functions_are_all_of_their_text():
    for script in migrate.functions():
        assert "".join(scripts.statements(script)).strip() == script.strip()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("-- Why.\ncreate or replace view mainspring.seen as select 1;", "view mainspring.seen"),
        (
            "create or replace trigger noted after update of a\n on mainspring.jobs execute x();",
            "trigger noted on mainspring.jobs",
        ),
        (FUNCTION, None),
        ("revoke execute on all functions in schema mainspring from public;", None),
    ],
)
def test_what_a_statement_locks_is_named(statement, name):
    assert scripts.locked_object(statement) == name


def test_every_view_and_trigger_of_ours_is_recognised():
    for script in migrate.functions():
        for statement in scripts.statements(script):
            makes = scripts.without_comments(statement).startswith(
                ("create or replace view", "create or replace trigger")
            )
            assert (scripts.locked_object(statement) is not None) is makes
