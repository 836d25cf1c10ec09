"""How definitions look on a terminal."""

from collections.abc import Iterator

import orjson
from rich.text import Text

from mainspring.api.models.definitions import DefinitionModel
from mainspring.cli.columns import Columns
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.output import Facts
from mainspring.cli.times import instant, span


def definition_view(definition: DefinitionModel) -> Facts:
    return Facts(_facts(definition))


def _facts(definition: DefinitionModel) -> Iterator[tuple[str, Text | str]]:
    yield "definition", Text(definition.key)
    yield "kind", definition.kind
    yield "state", _state(definition)
    yield "version", str(definition.version)
    rows: list[tuple[str, str]] = [
        ("description", definition.description),
        *((name.replace("_", " "), _text(value)) for name, value in definition.spec.items()),
        ("queue", f"{definition.queue}, priority {definition.priority}"),
        ("attempts", str(definition.max_attempts)),
        ("delivery", definition.delivery),
        ("timeout", span(definition.timeout)),
        ("retention", span(definition.retention) if definition.retention else ""),
        ("limit", _limits(definition)),
        ("approval", _approval(definition)),
        ("tags", ", ".join(definition.tags)),
        ("schema", _text(definition.arg_schema) if definition.arg_schema else ""),
        ("changed", instant(definition.updated_at)),
    ]
    for name, value in rows:
        if value:
            yield name, Text(value)


def _state(definition: DefinitionModel) -> Text:
    if definition.is_active:
        return Text("active", style="green")
    return Text("inactive: no new jobs", style="yellow")


def _limits(definition: DefinitionModel) -> str:
    parts = [
        (definition.concurrency, "at once"),
        (definition.key_concurrency, "at once per key"),
        (definition.rate, "per key"),
        (definition.limit, "(shared)"),
    ]
    said = [f"{value} {unit}" for value, unit in parts if value is not None]
    by = f", the key is {definition.limit_by}" if definition.limit_by else ""
    return ", ".join(said) + by


def _approval(definition: DefinitionModel) -> str:
    if not definition.approvals_needed:
        return ""
    by = ", ".join(definition.approvers) or "anyone"
    expiry = definition.approval_expiry
    return f"{definition.approvals_needed} by {by}" + (f", within {span(expiry)}" if expiry else "")


def _runs(definition: DefinitionModel) -> str:
    spec = definition.spec
    return str(spec.get("function") or (_text(spec["argv"]) if "argv" in spec else ""))


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _cells(definition: DefinitionModel) -> list[Cell]:
    is_active = definition.is_active
    return [
        definition.key,
        definition.kind,
        Text("active", style="green") if is_active else Text("inactive", style="yellow"),
        str(definition.version),
        definition.queue,
        _runs(definition),
        definition.updated_at,
        definition.description,
    ]


DEFINITIONS = Listing(
    Columns(
        names=("KEY", "KIND", "STATE", "VERSION", "QUEUE", "RUNS", "CHANGED", "NOTE"),
        dropped=("VERSION", "CHANGED", "RUNS", "QUEUE"),
        text=("RUNS", "NOTE"),
    ),
    _cells,
)
