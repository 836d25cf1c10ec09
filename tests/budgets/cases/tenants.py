"""Tenants, people, tokens, limits and queues."""

from tests.budgets.cases.shared import OPTION, Case, post, python, query, ways

CASES: list[Case] = [
    *ways(
        "limit: counts",
        1_000_000_000,
        [
            lambda b, n: b.rest("PUT", f"/limits/{b.name()}", {"concurrency": n}),
            query("select mainspring.set_limit(%s, %s)", lambda b, n: [b.name(), n]),
            python(lambda b, n: b.app.limits.set(b.name(), concurrency=n)),
        ],
        "",
        codes=OPTION,
        most=2_000_000_000,
    ),
    *ways(
        "limit: name",
        200,
        [
            lambda b, n: b.rest("PUT", f"/limits/{b.name(n)}", {"concurrency": 1}),
            query("select mainspring.set_limit(%s, 1)", lambda b, n: [b.name(n)]),
            python(lambda b, n: b.app.limits.set(b.name(n), concurrency=1)),
        ],
        "",
        codes=OPTION,
    ),
    *ways(
        "queue: name of a pause",
        500,
        [
            lambda b, n: b.rest("POST", f"/queues/{b.name(n)}/pause", {}),
            query("select mainspring.pause_queue(%s)", lambda b, n: [b.name(n)]),
            python(lambda b, n: b.app.queues.pause(b.name(n))),
        ],
        "",
        codes=OPTION,
    ),
    *ways(
        "queue: reason of a pause",
        10_000,
        [
            lambda b, n: b.rest("POST", "/queues/budget/pause", {"reason": "x" * n}),
            query("select mainspring.pause_queue('budget', %s)", lambda b, n: ["x" * n]),
            python(lambda b, n: b.app.queues.pause("budget", reason="x" * n)),
        ],
        "",
        codes=OPTION,
    ),
    *(
        Case(
            "person or token: name",
            f"REST, {noun}",
            100,
            post(
                f"/{noun}", lambda bench, n: {"name": bench.name(n), "role": "viewer"}, role="admin"
            ),
            "422",
            "",
        )
        for noun in ("people", "tokens")
    ),
    Case(
        "tenant: name",
        "REST",
        200,
        post("/tenants", lambda b, n: {"name": b.name(n)}),
        "422",
        "200",
    ),
    Case(
        "tenant: name",
        "SQL",
        200,
        query("insert into mainspring.tenants (tenant_id) values (%s)", lambda b, n: [b.name(n)]),
        "23514",
        "tenants_name_fits",
    ),
    Case(
        "token: scopes",
        "REST",
        50,
        post(
            "/tokens",
            lambda b, n: {"name": b.name(), "role": "viewer", "scopes": ["jobs:read"] * n},
            role="admin",
        ),
        "422",
        "50",
    ),
    Case(
        "token: tenants of a worker",
        "REST",
        100,
        post(
            "/tokens",
            lambda b, n: {"name": b.name(), "role": "worker", "tenants": ["acme"] * n},
        ),
        "422",
        "100",
    ),
]
