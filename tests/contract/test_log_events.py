"""Log events: the code, the table in `telemetry/catalogue/` and the page agree."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mainspring.telemetry.catalogue import EVENTS
from mainspring.telemetry.events import EVERYWHERE, FIELDS, JOB

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mainspring"
TABLE = SOURCE / "telemetry"
# The functions that log an event, with the place of its name, and what they add to its fields.
LOGGING = {"event": (0, ""), "log_event": (0, JOB), "log_about": (1, JOB), "_log_about": (0, JOB)}


class Logged(NamedTuple):
    """A call that logs an event, as far as it can be read."""

    event: str
    fields: frozenset[str]
    place: str


def logged(source: str, place: str) -> Iterator[Logged]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or (name := _name(node.func)) not in LOGGING:
            continue
        position, given = LOGGING[name]
        for event in _texts(node.args[position] if len(node.args) > position else None):
            fields = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
            yield Logged(event, frozenset(fields | set(given.split())), f"{place}:{node.lineno}")


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _texts(node: ast.expr | None) -> list[str]:
    """The name, or both where a condition chooses one."""
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    return []


def all_logged() -> list[Logged]:
    files = [file for file in SOURCE.rglob("*.py") if TABLE not in file.parents]
    return [each for file in files for each in logged(file.read_text(), file.name)]


def literals() -> set[str]:
    """Every text in the code; some names of events reach the call as a parameter."""
    files = [file for file in SOURCE.rglob("*.py") if TABLE not in file.parents]
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return {node.value for node in nodes if isinstance(node, ast.Constant)}  # type: ignore[misc]


def page_tool() -> str:
    path = ROOT / "tools" / "write_events.py"
    specification = importlib.util.spec_from_file_location("write_events", path)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    return str(tool.page())


def test_every_event_in_the_code_is_in_the_table_with_its_fields():
    unknown = [
        f"{each.place} {each.event}: {sorted(each.fields)}"
        for each in all_logged()
        if each.event not in EVENTS or each.fields - {*EVENTS[each.event].fields, *EVERYWHERE}
    ]

    assert unknown == [], "add it to src/mainspring/telemetry/catalogue/, then run `make events`"


def test_every_event_in_the_table_is_in_the_code():
    assert EVENTS.keys() - literals() == set()


def test_every_field_has_a_meaning():
    used = {field for event in EVENTS.values() for field in event.fields}

    assert used - FIELDS.keys() == set()


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_names_what_it_is_about(name):
    """Whoever reads a line about a job also has its tenant and definition, and so on."""
    fields = set(EVENTS[name].fields)

    if "job_id" in fields:
        assert {"tenant", "definition"} <= fields
    if "schedule" in fields:
        assert {"tenant", "slot"} <= fields
    if fields & {"event_id", "trigger"}:
        assert "tenant" in fields
    if "count" in fields:
        assert fields & {"job_ids", "event_ids", "schedules"}


def test_the_page_is_what_the_tool_writes():
    written = (ROOT / "docs" / "reference" / "events.md").read_text()

    assert written == page_tool(), "run `make events`"


def test_an_event_that_is_not_in_the_table_is_noticed():
    source = 'telemetry.event("new" if is_new else "old", tenant=1)\njob.log_event("x", error=2)\n'

    assert [(each.event, sorted(each.fields)) for each in logged(source, "a.py")] == [
        ("new", ["tenant"]),
        ("old", ["tenant"]),
        ("x", sorted([*JOB.split(), "error"])),
    ]
