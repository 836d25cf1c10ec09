"""`mainspring definitions` as a person meets it."""

import json
import socket
from functools import partial
from pathlib import Path

import psycopg
import pytest
import yaml

from tests.support.commands import mainspring, sentence

FUNCTIONS = """
create schema if not exists civic;
create or replace function civic.cleanup(payload jsonb) returns jsonb language sql
    as $$ select '{"success": true}'::jsonb $$;
create or replace function civic.bare() returns jsonb language sql
    as $$ select '{"success": true}'::jsonb $$;
delete from mainspring.definitions where kind <> 'python';
"""
BARE = ["create", "x", "--function", "civic.bare"]


@pytest.fixture(autouse=True)
def functions(connection: psycopg.Connection) -> None:
    connection.execute(FUNCTIONS)


@pytest.fixture
def call(command):
    return partial(command, "definitions")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with one program in it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "sync").write_text("#!/bin/sh\n")
    (folder / "sync").chmod(0o755)
    return folder


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
    assert listed.splitlines()[0].split()[:2] == ["KEY", "KIND"]
    assert "civic.cleanup" in listed


def test_a_remote_definition_is_made_with_nothing_but_its_key(call):
    made = call("create", "word_count", "--kind", "remote", "--queue", "node")

    assert (made.returncode, made.stdout) == (0, "Definition word_count is created.\n")
    assert call("list", "--kind", "remote").stdout.splitlines()[1].split()[:2] == [
        "word_count",
        "remote",
    ]


def test_parts_of_a_definition_can_be_emptied(server_command):
    update = ["definitions", "update", "x", "--json"]
    server_command("definitions", *BARE, "--concurrency", "2", "--rate", "5/minute")
    cleared = server_command(*update, "--clear", "rate", "--clear", "concurrency")
    refused = server_command(*update, "--clear", "queue")

    facts = json.loads(cleared.stdout)
    assert (facts["rate"], facts["concurrency"]) == (None, None)
    assert "--clear 'queue' cannot be cleared; choose from approval" in sentence(refused)


def test_json_and_yaml_are_for_programs(call, tmp_path):
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    nothing = call("list", "--kind", "sql")
    made = call(*BARE, "--schema", f"@{tmp_path}/schema.json", "--json")

    facts = json.loads(made.stdout)
    assert (facts["key"], facts["timeout"], facts["approvals_needed"]) == ("x", 3600.0, 0)
    assert facts["arg_schema"] == {"type": "object"}
    assert yaml.safe_load(call("list", "--after", "hello", "-o", "yaml").stdout)[-1] == facts
    assert nothing.stderr == "No matching definitions.\n"


MISTAKES: list[tuple[list[str], int, str]] = [
    (["create", "x"], 2, "x: function is missing; a sql definition needs it"),
    (["create", "x", "--function", "civic.gone"], 2, "function civic.gone does not exist"),
    (["create", "a b", "--function", "civic.bare"], 2, "the definition key 'a b' must start"),
    (["create", "x", "--kind", "python"], 2, "--kind a Python handler is declared in code"),
    (["create", "x", "--argv", '["sync"]'], 2, "--argv needs --kind command"),
    (
        ["create", "x", "--kind", "command", "--argv", "zoltag sync"],
        *(2, '; write a list: ["zoltag", "sync"]'),
    ),
    ([*BARE, "--timeout", "soon"], 2, "--timeout must be a duration"),
    ([*BARE, "--schema", "{"], 2, "--schema is not JSON"),
    ([*BARE, "--schema", "@no"], 2, "--schema cannot be read"),
    ([*BARE, "--role", "nobody_"], 2, "role nobody_ does not exist"),
    ([*BARE, "--priority", "1001"], 2, "--priority must be 1000 or less"),
    ([*BARE, "--approvals", "-1"], 2, "--approvals must be 0 or more"),
    (["update", "x"], 2, "update needs an option that changes something"),
    (["show", "helo"], 1, "unknown definition 'helo'; did you mean 'hello'?"),
    (["update", "hello", "--queue", "q"], 2, "hello: is declared in code; change it there"),
    (["create", "hello", "--function", "civic.bare"], 1, "definition 'hello' already exists"),
]


def test_a_mistake_is_answered_with_one_sentence(server_command):
    for words, code, said in MISTAKES:
        done = server_command("definitions", *words)
        assert said in sentence(done), words
        assert done.returncode == code, words


def test_a_program_is_looked_for_where_the_server_is(server_command, programs, database_url):
    create = ["definitions", "create", "sync", "--kind", "command"]
    argv = ["--argv", '["sync", "--id={id}", ["--limit={limit}"]]', "--json"]
    here = {"MAINSPRING_DATABASE_URL": database_url}
    here["MAINSPRING_COMMAND_DIRECTORIES"] = str(programs)
    refused = server_command(*create, *argv)
    missing = mainspring(*create, "--argv", '["rsync"]', **here)
    made = mainspring(*create, *argv, **here)

    assert "set MAINSPRING_COMMAND_DIRECTORIES to the directories" in sentence(refused)
    assert sentence(missing).endswith(f"'rsync' in {programs} on {socket.gethostname()}")
    spec = json.loads(made.stdout)["spec"]
    assert spec["executable"] == str(programs / "sync")
    assert spec["argv"] == ["sync", "--id={id}", ["--limit={limit}"]]


def test_a_role_that_nobody_can_log_in_as_has_to_be_trusted(server_command):
    role = ["--role", "pg_monitor"]
    refused = server_command("definitions", *BARE, *role)
    made = server_command("definitions", *BARE, *role, "--trusted", "--json")
    changed = server_command("definitions", "update", "x", "--no-trusted")

    for each in (refused, changed):
        assert "x: cannot log in as pg_monitor: role " in sentence(each)
        assert "run `alter role pg_monitor login` and add pg_monitor=URL to" in sentence(each)
    spec = {"function": "civic.bare", "role": "pg_monitor", "trusted": True}
    assert json.loads(made.stdout)["spec"] == spec


def test_only_an_operator_says_what_may_run(server_command):
    made = server_command("definitions", *BARE)
    refused = server_command("definitions", "deactivate", "x", role="member")
    shown = server_command("definitions", "show", "x", role="member")

    assert made.stdout == "Definition x is created.\n"
    assert sentence(refused).startswith(
        "error: the role member may not write definitions; it requires"
    )
    assert "civic.bare" in shown.stdout


def test_a_definition_runs_at_most_once(call):
    made = call(*BARE, "--delivery", "at_most_once")
    shown = call("show", "x").stdout
    facts = json.loads(call("show", "x", "--json").stdout)
    refused = call("update", "x", "--max-attempts", "3")
    wrong = call("update", "x", "--delivery", "twice")

    assert made.returncode == 0
    assert "delivery\tat_most_once" in shown
    assert (facts["delivery"], facts["max_attempts"]) == ("at_most_once", 1)
    assert "x: max_attempts must be 1 with delivery at_most_once, not 3" in sentence(refused)
    assert wrong.returncode == 2
    assert "at_most_once" in wrong.stderr
