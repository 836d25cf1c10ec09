"""Reasons and approvers."""

from tests.budgets.bench import TENANT, Bench, Refusal
from tests.budgets.cases.shared import DEFINITION, Case, Send, definition, query, text, ways


def reason(path: str) -> Send:
    def send(bench: Bench, count: int) -> Refusal | None:
        return bench.rest(
            "POST", path.format(bench.job("careful")), {"reason": text(count)}, role="admin"
        )

    return send


def vote(function: str) -> Send:
    return query(
        f"select mainspring.{function}(%s, %s, '{TENANT}')",
        lambda bench, count: [bench.job("careful"), text(count)],
    )


CASES: list[Case] = [
    *ways(
        "approval: approvers of a definition",
        100,
        definition("approvers", lambda count: ["ann"] * count, approvals_needed=1),
        "100",
        codes=DEFINITION,
    ),
    Case(
        "approval: reason of an approval",
        "REST",
        10_000,
        reason("/jobs/{}/approve"),
        "422",
        "10000",
    ),
    Case("approval: reason of an approval", "SQL", 10_000, vote("approve"), "MS003", "10000"),
    Case("approval: reason of a rejection", "REST", 500, reason("/jobs/{}/reject"), "422", "500"),
    Case("approval: reason of a rejection", "SQL", 500, vote("reject"), "MS003", "500"),
]
