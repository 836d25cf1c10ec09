"""Definitions in Python."""

from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from mainspring import Backoff, Mainspring
from mainspring.domain.errors import (
    DuplicateDefinition,
    InvalidDefinition,
    InvalidOption,
    InvalidPayload,
    UnknownDefinition,
)
from mainspring.settings import load

FUNCTION = (
    "create schema if not exists civic;"
    " create or replace function civic.cleanup(payload jsonb) returns jsonb"
    " language sql as $$ select '{\"success\": true}'::jsonb $$;"
)


@pytest.fixture
def civic(app: Mainspring, connection: psycopg.Connection) -> Mainspring:
    connection.execute(FUNCTION)
    return app


def test_a_definition_is_stored_with_all_it_was_given(civic: Mainspring):
    fields = {
        "description": "Removes old rows",
        "queue": "slow",
        "priority": 5,
        "max_attempts": 7,
        "timeout": timedelta(minutes=2),
        "backoff": Backoff(timedelta(seconds=1), 3, timedelta(hours=1), timedelta(0)),
        "arg_schema": {"type": "object"},
        "tags": ["nightly", "civic"],
        "retention": timedelta(days=3),
    }
    made = civic.definitions.create("cleanup", "sql", function="civic.cleanup", **fields)

    assert civic.definitions.get("cleanup") == made
    stored = {name: getattr(made.definition, name) for name in fields}
    assert stored == {**fields, "tags": ("nightly", "civic")}
    assert (made.version, made.is_active) == (1, True)
    assert made.definition.spec["function"] == "civic.cleanup"


def test_an_update_changes_what_it_names(civic: Mainspring):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup", queue="slow")

    changed = civic.definitions.update("cleanup", timeout=timedelta(minutes=2), tags=["x"])

    assert (changed.version, changed.definition.queue) == (2, "slow")
    assert changed.definition.timeout == timedelta(minutes=2)
    assert changed.definition.spec["function"] == "civic.cleanup"


def test_definitions_are_listed_by_key_and_kind(civic: Mainspring):
    civic.definitions.create("b", "sql", function="civic.cleanup")
    civic.definitions.create("a", "sql", function="civic.cleanup")
    civic.definitions.deactivate("a")

    def keys(**filters):
        return [state.key for state in civic.definitions.list(**filters)]

    assert keys(kind="sql") == ["a", "b"]
    assert keys(kind="sql", active=True) == ["b"]
    assert keys(kind="sql", after="a") == ["b"]
    assert keys(kind="sql", limit=1) == ["a"]
    assert keys(kind="command") == []


def test_an_inactive_definition_takes_no_jobs(civic: Mainspring):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup")
    assert not civic.definitions.deactivate("cleanup").is_active
    with pytest.raises(UnknownDefinition):
        civic.enqueue("cleanup", {})

    assert civic.definitions.activate("cleanup").is_active
    assert civic.enqueue("cleanup", {}).is_new


@pytest.mark.parametrize(
    ("key", "kind", "fields", "said"),
    [
        ("x", "sql", {}, "x: function is missing; a sql definition needs it"),
        ("x", "sql", {"function": "civic.gone"}, "x: function civic.gone does not exist"),
        ("x", "python", {}, "x: a Python handler is declared in code, with @app.job"),
        ("x", "lua", {}, "kind must be one of python, sql, command, remote, not 'lua'"),
        ("x", "sql", {"function": "civic.cleanup", "timout": 3}, "timout is not a field of a sql"),
        ("x", "sql", {"function": "civic.cleanup", "queue": ""}, "queue must not be empty"),
        (
            "x",
            "sql",
            {"function": "civic.cleanup", "priority": 2000},
            "priority must be a whole number",
        ),
        ("x", "sql", {"function": "civic.cleanup", "max_attempts": 0}, "x: max_attempts must"),
        ("x", "sql", {"function": "civic.cleanup", "timeout": 3}, "x: timeout must be"),
        ("x", "sql", {"function": "civic.cleanup", "retention": -1}, "x: retention must be"),
        ("x", "sql", {"function": "civic.cleanup", "tags": "a"}, "x: tags must be a list"),
        ("x", "sql", {"function": "civic.cleanup", "arg_schema": 3}, "x: arg_schema must be"),
        (
            "x",
            "sql",
            {"function": "civic.cleanup", "role": "nobody_"},
            "x: role nobody_ does not exist; create",
        ),
        ("a b", "sql", {"function": "civic.cleanup"}, "the definition key 'a b' must start"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(civic: Mainspring, key, kind, fields, said):
    with pytest.raises((InvalidDefinition, InvalidOption)) as caught:
        civic.definitions.create(key, kind, **fields)

    assert str(caught.value).startswith(said)
    assert civic.definitions.list(kind="sql") == []


def test_a_key_can_be_taken_once(civic: Mainspring):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup")

    with pytest.raises(DuplicateDefinition, match="definition 'cleanup' already exists"):
        civic.definitions.create("cleanup", "sql", function="civic.cleanup")


def test_an_unknown_key_is_answered_with_the_one_that_was_meant(civic: Mainspring):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup")

    for use in (civic.definitions.get, civic.definitions.deactivate, civic.definitions.update):
        with pytest.raises(UnknownDefinition, match="did you mean 'cleanup'"):
            use("clenup")


def test_a_definition_in_code_is_changed_in_code(civic: Mainspring):
    @civic.job(tags=["a"], retention=timedelta(days=1), arg_schema={"type": "object"})
    def tidy() -> None: ...

    civic.register_definitions()

    declared = civic.definitions.get("tidy").definition
    assert (declared.tags, declared.retention) == (("a",), timedelta(days=1))
    assert declared.arg_schema == {"type": "object"}
    with pytest.raises(InvalidDefinition, match="tidy: is declared in code; change it there"):
        civic.definitions.update("tidy", queue="slow")


def test_a_handler_cannot_take_the_key_of_a_function(civic: Mainspring):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup")

    @civic.job
    def cleanup() -> None: ...

    with pytest.raises(InvalidDefinition, match="cleanup: is a definition of the kind sql"):
        civic.register_definitions()


# Commands


@pytest.fixture
def commands(database_url: str, tmp_path: Path) -> Mainspring:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "notes.txt").write_text("")
    return Mainspring(settings=load(database_url=database_url, command_directories=str(tmp_path)))


def test_a_command_is_stored_with_the_path_of_its_program(commands: Mainspring, tmp_path: Path):
    made = commands.definitions.create("x", "command", argv=["tool", "{id}"], fail_codes=[64])

    assert made.definition.spec == {
        "argv": ["tool", "{id}"],
        "fail_codes": [64],
        "executable": str((tmp_path / "tool").resolve()),
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "x: argv is missing; a command definition needs it"),
        ({"argv": "tool -x"}, "x: argv must be a list of arguments"),
        ({"argv": ["gone"]}, "x: there is no program 'gone' in "),
        ({"argv": ["tool", "--{o}"]}, "x: in '--{o}' the payload would choose the option"),
        (
            {"argv": ["tool", "{b}"], "arg_schema": {"properties": {"a": {}}}},
            "x: argv names {b}, which is not a property of arg_schema",
        ),
        ({"argv": ["notes.txt"]}, "x: there is no program 'notes.txt' in "),
        ({"argv": ["/bin/sh"]}, "x: there is no program '/bin/sh' in "),
        ({"argv": ["../bin/sh"]}, "x: there is no program '../bin/sh' in "),
        (
            {"argv": ["tool"], "environment": "PATH"},
            "x: environment must be a list of variable names",
        ),
        ({"argv": ["tool"], "environment": ["A=B"]}, "x: 'A=B' is not the name of an environment"),
        ({"argv": ["tool"], "working_directory": "tmp"}, "x: working_directory must be an abs"),
        (
            {"argv": ["tool"], "fail_codes": [300]},
            "x: fail_codes must contain numbers from 0 to 255",
        ),
        ({"argv": ["tool"], "success_codes": 0}, "x: success_codes must be a list"),
        (
            {"argv": ["tool"], "fail_codes": [0]},
            "x: the exit code 0 cannot mean both success and failure",
        ),
        ({"argv": ["tool"], "function": "a.b"}, "function is not a field of a command definition"),
    ],
)
def test_a_command_that_cannot_be_is_refused(commands: Mainspring, fields, said):
    with pytest.raises((InvalidDefinition, InvalidOption)) as caught:
        commands.definitions.create("x", "command", **fields)

    assert str(caught.value).startswith(said)


def test_a_schema_that_lacks_what_a_command_names_is_refused_later_too(commands: Mainspring):
    commands.definitions.create("x", "command", argv=["tool", "{id}"])

    with pytest.raises(InvalidDefinition, match=r"argv names \{id\}"):
        commands.definitions.update("x", arg_schema={"properties": {"ids": {}}})
    commands.definitions.update("x", arg_schema={"properties": {"id": {}}})


def test_without_directories_there_are_no_commands(civic: Mainspring):
    with pytest.raises(InvalidDefinition, match="set MAINSPRING_COMMAND_DIRECTORIES"):
        civic.definitions.create("x", "command", argv=["ls"])


# Schemas

SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer", "minimum": 1}},
    "required": ["days"],
}


def test_a_payload_that_does_not_fit_is_refused_before_it_is_enqueued(
    civic: Mainspring, connection: psycopg.Connection
):
    civic.definitions.create("cleanup", "sql", function="civic.cleanup", arg_schema=SCHEMA)

    with pytest.raises(InvalidPayload, match=r"payload/days: .* \(rule properties/days/minimum\)"):
        civic.enqueue("cleanup", {"days": 0})
    with pytest.raises(InvalidPayload, match=r"\(rule required\)"):
        civic.enqueue_many("cleanup", [{"days": 1}, {}])
    assert civic.enqueue("cleanup", {"days": 1}).is_new

    assert connection.execute("select count(*) from mainspring.jobs").fetchone() == (1,)


def test_a_handler_in_code_has_its_payloads_checked_too(civic: Mainspring):
    @civic.job(arg_schema=SCHEMA)
    def tidy(days: int) -> None: ...

    with pytest.raises(InvalidPayload, match="payload/days"):
        tidy.enqueue(days=0)
    assert tidy.enqueue(days=1).is_new


def test_a_schema_that_is_none_is_refused(civic: Mainspring):
    with pytest.raises(InvalidDefinition, match="x: arg_schema is not a valid JSON Schema"):
        civic.definitions.create("x", "sql", function="civic.cleanup", arg_schema={"type": "no"})
    with pytest.raises(InvalidDefinition, match="arg_schema is not a valid JSON Schema"):
        civic.job(key="x", arg_schema={"type": "no"})(lambda: None)
