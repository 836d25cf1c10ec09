"""`mainspring definitions` as a person meets it."""

import json

import psycopg
import pytest

from tests.support.commands import Done, mainspring

FUNCTIONS = """
create schema if not exists civic;
create or replace function civic.cleanup(payload jsonb) returns jsonb language sql
    as $$ select '{"success": true}'::jsonb $$;
create or replace function civic.bare() returns jsonb language sql
    as $$ select '{"success": true}'::jsonb $$;
delete from mainspring.definitions where kind <> 'python';
"""


@pytest.fixture
def call(database_url: str, connection: psycopg.Connection):
    connection.execute(FUNCTIONS)

    def call(*words: str) -> Done:
        return mainspring("definitions", *words, MAINSPRING_DATABASE_URL=database_url)

    return call


def test_a_definition_is_made_shown_changed_and_put_aside(call):
    made = call("create", "cleanup", "--function", "civic.cleanup", "--tag", "a", "--tag", "b")
    assert (made.returncode, made.stdout) == (0, "Definition cleanup is created.\n")

    changed = call("update", "cleanup", "--timeout", "5m", "--retention", "30d")
    assert changed.stdout.startswith("Definition cleanup is updated, version ")

    assert call("deactivate", "cleanup").stdout == "Definition cleanup is deactivated.\n"
    shown = call("show", "cleanup").stdout
    for words in ("kind", "sql", "inactive", "civic.cleanup", "a, b", "5 min", "30 d"):
        assert words in shown

    assert call("activate", "cleanup").stdout == "Definition cleanup is active.\n"
    listed = call("list", "--kind", "sql").stdout
    assert "KEY" in listed
    assert "civic.cleanup" in listed


def test_json_is_for_programs(call):
    call("create", "cleanup", "--function", "civic.cleanup", "--schema", '{"type": "object"}')

    (facts,) = json.loads(call("list", "--kind", "sql", "--json").stdout)
    assert (facts["key"], facts["timeout"]) == ("cleanup", 3600.0)
    assert facts["arg_schema"] == {"type": "object"}
    assert json.loads(call("show", "cleanup", "--json").stdout) == facts


def test_nothing_is_said_of_nothing(call):
    assert call("list", "--kind", "sql").stdout == "No definitions.\n"


def test_a_schema_may_come_from_a_file(call, tmp_path):
    (tmp_path / "schema.json").write_text('{"type": "object"}')

    done = call("create", "x", "--function", "civic.bare", "--schema", f"@{tmp_path}/schema.json")

    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "x"], "x: function is missing; a sql definition needs it"),
        (["create", "x", "--function", "civic.gone"], "there is no function civic.gone"),
        (["create", "a b", "--function", "civic.bare"], "the definition key 'a b' must start"),
        (["create", "x", "--kind", "python"], "a Python handler is declared in code"),
        (["create", "x", "--function", "civic.bare", "--timeout", "soon"], "timeout must be a dur"),
        (["create", "x", "--function", "civic.bare", "--schema", "{"], "schema is not JSON"),
        (["create", "x", "--function", "civic.bare", "--schema", "@no"], "schema cannot be read"),
        (["create", "x", "--function", "civic.bare", "--role", "nobody_"], "no role nobody_"),
        (["update", "x"], "update has nothing to change"),
        (["show", "x"], "no definition has the key 'x'"),
        (["update", "x", "--queue", "q"], "no definition has the key 'x'"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(call, words, said):
    done = call(*words)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_key_that_is_taken_is_no_mistake_in_the_command(call):
    call("create", "x", "--function", "civic.bare")

    done = call("create", "x", "--function", "civic.bare")

    assert done.returncode == 1
    assert "there is a definition 'x' already" in done.stderr
