"""/definitions over REST: what is refused, and where in the request."""

from typing import Any

import psycopg
import pytest

from tests.support.api import Api

WRONG = "create function public.wrongret() returns text return 'fine'"


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"kind": "sql"}, "function", "is missing; a sql definition needs it"),
        (
            {"kind": "sql", "function": "public.wrongret", "role": "mainspring"},
            "function",
            "public.wrongret returns text; it must return jsonb",
        ),
        ({"kind": "sql", "function": "public.nowhere"}, "function", "public.nowhere does not"),
        ({"kind": "command"}, "argv", "is missing"),
        ({"kind": "command", "argv": ["x", "{a"]}, "argv", "'{a' has a brace"),
        ({"kind": "command", "argv": ["no-program"]}, "argv", ""),
        ({"kind": "command", "argv": ["x"], "working_directory": "a"}, "working_directory", "must"),
        ({"kind": "python"}, "kind", "a Python handler is declared in code"),
        ({"kind": "remote", "arg_schema": {"type": 1}}, "arg_schema", "is not a valid"),
        ({"kind": "remote", "burst": 2}, "burst", "needs a rate"),
    ],
)
async def test_a_refusal_names_the_field(
    api: Api,
    connection: psycopg.Connection,
    given: dict[str, Any],
    field: str,
    problem: str,
):
    connection.execute(WRONG)

    refused = await api.post("/definitions", {"key": "x", **given})

    assert refused.status_code == 422
    (fault,) = refused.json()["errors"]
    assert fault["path"] == f"body.{field}"
    assert fault["problem"].startswith(problem)
