"""Workers over the API."""

from collections.abc import Callable
from typing import Any

from tests.budgets.bench import Bench, Refusal
from tests.budgets.cases.shared import MIB, Case, Send, post, report, text


def claim(bench: Bench, asked: dict[str, Any]) -> Refusal | None:
    made = bench.ask("POST", "/work/workers", {"name": "w", "queues": ["none"]}, role="worker")
    path = f"/work/workers/{made.json()['worker_id']}/claim"
    return bench.rest("POST", path, asked, role="worker")


def claiming(make: Callable[[int], dict[str, Any]]) -> Send:
    return lambda bench, count: claim(bench, make(count))


CASES: list[Case] = [
    *(
        Case(
            f"worker over the API: {row}",
            "REST",
            limit,
            claiming(make),
            "422",
            str(limit),
        )
        for row, limit, make in (
            ("definitions of a claim", 1000, lambda count: {"definitions": ["work"] * count}),
            ("jobs of a claim (`limit`)", 1000, lambda n: {"definitions": ["none"], "limit": n}),
        )
    ),
    Case(
        "worker over the API: definitions of a registration",
        "REST",
        100,
        post(
            "/work/register",
            lambda _, n: {"definitions": [{"key": f"far{number}"} for number in range(n)]},
        ),
        "422",
        "100",
    ),
    Case(
        "worker over the API: error",
        "REST",
        100_000,
        report("fail", lambda count: {"error": text(count)}),
        "422",
        "100000",
        most=7 * MIB,
    ),
    Case(
        "worker over the API: output (`stdout`, `stderr`)",
        "REST",
        MIB,
        report("complete", lambda count: {"stdout": text(count)}),
        "422",
        "1048576",
        most=7 * MIB,
    ),
    Case(
        "worker over the API: queues",
        "REST",
        100,
        post("/work/workers", lambda _, n: {"name": "w", "queues": ["q"] * n}, role="worker"),
        "422",
        "100",
    ),
]
