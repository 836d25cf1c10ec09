"""Events, triggers and payload templates."""

from collections.abc import Callable
from typing import Any

from psycopg.types.json import Jsonb

from tests.budgets.cases.shared import (
    KIB,
    MIB,
    OPTION,
    Case,
    Send,
    nested,
    payload,
    post,
    python,
    query,
    text,
    ways,
)


def trigger(make: Callable[[int], dict[str, Any]]) -> Send:
    return post(
        "/triggers",
        lambda bench, count: {
            "name": bench.name(),
            "event": "a",
            "definition": "work",
            **make(count),
        },
    )


def template(count: int) -> dict[str, Any]:
    return {"payload": {f"k{number}": "{{event}}" for number in range(count)}}


def deep_context(levels: int) -> str:
    return '{"a": ' + "[" * (levels - 1) + "1" + "]" * (levels - 1) + "}"


CASES: list[Case] = [
    *ways(
        "event: context",
        MIB,
        [
            post("/events", lambda _, count: {"name": "a", "context": payload(count)}),
            query("select mainspring.emit('a', %s)", lambda _, count: [Jsonb(payload(count))]),
            python(lambda bench, count: bench.app.emit("a", payload(count))),
        ],
        "",
        codes=("422", "MS060", "invalid_event"),
        most=9 * MIB,
    ),
    *ways(
        "event: context, levels",
        200,
        [
            # The body and the context are levels of the request.
            post("/events", lambda _, count: {"name": "a", "context": {"a": nested(count - 2)}}),
            query("select mainspring.emit('a', %s::text::jsonb)", lambda _, n: [deep_context(n)]),
            python(lambda bench, count: bench.app.emit("a", {"a": nested(count - 1)})),
        ],
        "",
        codes=("422", "MS060", "invalid_event"),
        most=250,
    ),
    *ways(
        "event: correlation id",
        500,
        [
            post("/events", lambda _, count: {"name": "a", "correlation_id": text(count)}),
            query(
                "select mainspring.emit('a', correlation_id => %s)", lambda _, count: [text(count)]
            ),
            python(lambda bench, count: bench.app.events.emit("a", {}, correlation_id=text(count))),
        ],
        "500",
        codes=OPTION,
    ),
    *ways(
        "event: name",
        200,
        [
            post("/events", lambda bench, count: {"name": text(count)}),
            query("select mainspring.emit(%s)", lambda _, count: [text(count)]),
            python(lambda bench, count: bench.app.emit(text(count))),
        ],
        "200",
        codes=("422", "MS060", "invalid_event"),
    ),
    Case("payload template: expressions", "REST", 200, trigger(template), "422", "200"),
    Case(
        "payload template: one string",
        "REST",
        10_000,
        trigger(lambda count: {"payload": {"a": "{{event.a}}".ljust(count, "x")}}),
        "422",
        "",
    ),
    Case(
        "payload template: values",
        "REST",
        10_000,
        trigger(lambda count: {"payload": {"a": "{{event.a}}", "b": [1] * (count - 3)}}),
        "422",
        "10,000",
    ),
    *ways(
        "trigger: name",
        200,
        [
            post("/triggers", lambda b, n: {"name": b.name(n), "event": "a", "definition": "work"}),
            query(
                "insert into mainspring.triggers (name, event, definition)"
                " values (%s, 'a', 'work')",
                lambda b, n: [b.name(n)],
            ),
            python(lambda b, n: b.app.triggers.create(b.name(n), event="a", definition="work")),
        ],
        "200",
        codes=("422", "MS061", "invalid_trigger"),
    ),
    *ways(
        "trigger: payload",
        64 * KIB,
        [
            trigger(lambda size: {"payload": payload(size)}),
            query(
                "insert into mainspring.triggers (name, event, definition, payload)"
                " values (%s, 'a', 'work', %s)",
                lambda b, n: [b.name(), Jsonb(payload(n))],
            ),
            python(
                lambda b, n: b.app.triggers.create(
                    b.name(), event="a", definition="work", payload=payload(n)
                )
            ),
        ],
        "",
        codes=("422", "MS061", "invalid_trigger"),
        most=900 * KIB,
    ),
]
