"""Flows and their steps."""

from collections.abc import Callable
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.domain.flows import Step, ensure_size, in_order
from mainspring.store.jobs import DEFAULT_OPTIONS
from tests.budgets.bench import Bench
from tests.budgets.cases.shared import MIB, Case, Send, post, python, query, text, ways


def steps(count: int, parents: int = 0) -> list[dict[str, Any]]:
    """Steps with so many parents together: every later one after the first."""
    first: list[dict[str, Any]] = [
        {"step": f"s{number}", "definition": "work"} for number in range(count)
    ]
    left = parents
    names = [step["step"] for step in first]
    for number, step in enumerate(first):
        taken = min(left, number, 1000)
        if taken:
            step["after"] = names[:taken]
            left -= taken
    return first


def numbered(given: list[dict[str, Any]]) -> Jsonb:
    """The same as SQL takes them."""
    numbers = {step["step"]: number for number, step in enumerate(given)}
    return Jsonb(
        [{**step, "after": [numbers[each] for each in step.get("after", [])]} for step in given]
    )


def flow(make: Callable[[int], list[dict[str, Any]]]) -> list[Send]:
    def order(_: Bench, count: int) -> object:
        made: dict[str, Step] = {}
        for each in make(count):
            step = Step(each["definition"], {}, DEFAULT_OPTIONS, name=each["step"])
            made[each["step"]] = step.after(*(made[name] for name in each.get("after", [])))
        return in_order(list(made.values()))

    return [
        post("/flows", lambda _, count: {"name": "f", "steps": make(count)}),
        query("select mainspring.enqueue_flow('f', %s)", lambda _, count: [numbered(make(count))]),
        python(order),
    ]


CASES: list[Case] = [
    Case(
        "flow: name",
        "REST",
        200,
        post("/flows", lambda _, n: {"name": text(n), "steps": steps(1)}),
        "422",
        "200",
    ),
    Case(
        "flow: name",
        "SQL",
        500,
        query("select mainspring.enqueue_flow(%s, %s)", lambda _, n: [text(n), numbered(steps(1))]),
        "MS003",
        "500",
    ),
    *ways(
        "flow: parents of its steps together",
        50_000,
        flow(lambda count: steps(500 + count // 500, count)),
        "50",
        codes=("422", "MS003", "invalid_flow"),
        most=500_000,
    ),
    Case(
        "flow: payloads of its steps together",
        "Python",
        64 * MIB,
        python(lambda _, count: ensure_size(count)),
        "invalid_flow",
        "67,108,864",
    ),
    *ways(
        "flow: steps",
        10_000,
        flow(steps),
        "10",
        codes=("422", "MS003", "invalid_flow"),
        most=100_000,
    ),
]
