"""Definitions, their schemas and commands."""

from collections.abc import Callable
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.domain.commands import read_command
from mainspring.domain.definitions import Definition
from tests.budgets.cases.shared import (
    DEFINITION,
    KIB,
    MIB,
    Case,
    Send,
    definition,
    nested,
    post,
    python,
    query,
    text,
    ways,
)


def schema(document: Callable[[int], dict[str, Any]]) -> Send:
    return definition("arg_schema", document)[0]


def schema_of(size: int) -> dict[str, Any]:
    """A schema of so many bytes, as PostgreSQL writes it."""
    return {"title": text(size - len('{"title": ""}'))}


CASES: list[Case] = [
    Case(
        "command: argument",
        "Python",
        10_000,
        python(lambda _, count: read_command("c", {"argv": ["echo", text(count)]})),
        "invalid_definition",
        "10,000",
    ),
    Case(
        "command: arguments",
        "Python",
        1000,
        python(
            lambda _, count: read_command(
                "c", {"argv": ["echo", ["a", "{b}"], *["c"] * (count - 3)]}
            )
        ),
        "invalid_definition",
        "1000",
    ),
    Case(
        "command: variables of the environment",
        "Python",
        100,
        python(
            lambda _, count: read_command(
                "c", {"argv": ["echo"], "environment": [f"V{number}" for number in range(count)]}
            )
        ),
        "invalid_definition",
        "100",
    ),
    Case(
        "definition: JSON Schema (`arg_schema`)",
        "REST",
        64 * KIB,
        schema(lambda size: schema_of(size + 1)),
        "422",
        "65,536",
        most=7 * MIB,
    ),
    Case(
        "definition: JSON Schema (`arg_schema`)",
        "SQL",
        MIB,
        definition("arg_schema", schema_of)[1],
        "MS050",
        "1048576",
        most=8 * MIB,
    ),
    Case(
        "definition: JSON Schema, levels",
        "REST",
        50,
        schema(lambda levels: {"enum": nested(levels - 1)}),
        "422",
        "50 are allowed",
        most=150,
    ),
    Case(
        "definition: JSON Schema, patterns",
        "REST",
        50,
        schema(lambda count: {"patternProperties": {f"a{n}": {} for n in range(count)}}),
        "422",
        "50 are allowed",
        most=4000,
    ),
    Case(
        "definition: JSON Schema, subschemas",
        "REST",
        5000,
        schema(lambda count: {"anyOf": [{}] * (count - 1)}),
        "422",
        "allowed",
    ),
    *ways(
        "definition: description",
        10_000,
        definition("description", text),
        "10",
        codes=DEFINITION,
    ),
    *ways(
        "definition: key",
        200,
        [
            post(
                "/definitions",
                lambda b, n: {"key": b.name(n), "kind": "sql", "function": "public.noop"},
            ),
            query(
                "insert into mainspring.definitions (key, kind) values (%s, 'python')",
                lambda b, n: [b.name(n)],
            ),
            python(lambda bench, count: Definition(bench.name(count))),
        ],
        "200",
        codes=DEFINITION,
    ),
    Case(
        "definition: spec (function or command)",
        "SQL",
        MIB,
        query(
            "insert into mainspring.definitions (key, kind, spec) values (%s, 'command', %s)",
            lambda b, n: [b.name(), Jsonb({"argv": ["a", text(n - len('{"argv": ["a", ""]}'))]})],
        ),
        "MS050",
        "1048576",
        most=8 * MIB,
    ),
    *ways(
        "definition: tags",
        50,
        definition("tags", lambda count: ["a"] * count),
        "50",
        codes=DEFINITION,
    ),
]
