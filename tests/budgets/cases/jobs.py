"""Jobs, and operations on many of them."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId
from mainspring.services.enqueueing import _ensure_for_many
from mainspring.store.jobs import DEFAULT_OPTIONS
from tests.budgets.bench import TENANT, Bench, Refusal
from tests.budgets.cases.shared import (
    DAY,
    KIB,
    MIB,
    OPTION,
    Case,
    Send,
    payload,
    post,
    python,
    query,
    report,
    text,
    ways,
)

PROGRESS = '{"current":1.0,"total":null,"message":null,"data":""}'
_NUMBERS = itertools.count(1)


def unique(length: int) -> str:
    return f"k{next(_NUMBERS)}".ljust(length, "x")


def option(name: str, make: Callable[[int], Any], definition: str = "work") -> list[Send]:
    """An option of an enqueue over REST, SQL and Python."""
    return [
        post("/jobs", lambda _, count: {"definition": definition, name: make(count)}),
        query(
            f"select mainspring.enqueue('{definition}', {name} => %s)",
            lambda _, count: [make(count)],
        ),
        python(lambda bench, count: bench.app.enqueue(definition, {}, **{name: make(count)})),
    ]


def parents_of(bench: Bench, count: int) -> list[int]:
    last = bench.job(count=min(count, 1000))
    return [max(last - number, 1) for number in range(count)]


def cancel(bench: Bench, job_id: int, count: int) -> Refusal | None:
    return bench.python(lambda: bench.app.jobs.cancel(job_id, reason=text(count), tenant_id=TENANT))


def many(bench: Bench, count: int) -> Refusal | None:
    """Nothing is enqueued: what is asked is checked first, and the limit itself takes a minute."""
    return bench.python(lambda: _ensure_for_many(DEFAULT_OPTIONS, count, None))


def checks(bench: Bench, values: int) -> Refusal | None:
    """A payload with so many values, each of which a thousand subschemas may look at."""
    choices = {"anyOf": [{"const": number} for number in range(997)]}
    schema = {"properties": {"numbers": {"items": choices}}}
    key = bench.name()
    made = {"key": key, "kind": "sql", "function": "public.noop", "arg_schema": schema}
    assert bench.ask("POST", "/definitions", made).is_success
    payload = {"numbers": [0] * (values - 2)}
    return bench.rest("POST", "/jobs", {"definition": key, "payload": payload})


CASES: list[Case] = [
    Case(
        "payload: steps of a check against its schema", "REST", 10_000, checks, "422", "10,000,000"
    ),
    Case(
        "bulk operation: reason",
        "REST",
        10_000,
        post(
            "/jobs/bulk",
            lambda _, count: {
                "action": "cancel",
                "filter": {"queue": "none"},
                "reason": text(count),
            },
        ),
        "422",
        "10000",
    ),
    Case(
        "bulk operation: reason",
        "SQL",
        10_000,
        query(
            "select mainspring.start_bulk('cancel', '{\"queue\": \"none\"}', %s)",
            lambda _, n: [text(n)],
        ),
        "MS003",
        "10000",
    ),
    Case(
        "idempotency key",
        "REST",
        200,
        lambda bench, count: bench.rest(
            "POST", "/jobs", {"definition": "work"}, **{"Idempotency-Key": bench.name(count)}
        ),
        "422",
        "200",
    ),
    *ways("idempotency key", 500, option("idempotency_key", unique), "500", codes=OPTION)[1:],
    *ways("job: attempts, priority", 1000, option("priority", int), "1000", codes=OPTION),
    *ways("job: attempts, priority", 1000, option("max_attempts", int), "1000", codes=OPTION),
    Case(
        "job: checkpoint",
        "REST",
        MIB,
        report("checkpoint", lambda size: {"checkpoint": text(size - 2)}),
        "413",
        "",
        most=9 * MIB,
    ),
    Case(
        "job: progress, with its message and data",
        "REST",
        64 * KIB,
        report("progress", lambda size: {"current": 1, "data": text(size - len(PROGRESS))}),
        "413",
        "",
    ),
    Case(
        "job: result",
        "REST",
        MIB,
        report("complete", lambda size: {"result": text(size - 2)}),
        "413",
        "",
        most=9 * MIB,
    ),
    *ways("job: correlation id", 500, option("correlation_id", text), "500", codes=OPTION),
    *ways("job: dedupe key, limit key", 500, option("dedupe_key", unique), "500", codes=OPTION),
    *ways(
        "job: dedupe key, limit key", 500, option("limit_key", text, "limited"), "500", codes=OPTION
    ),
    *ways(
        "job: delay, timeout and other durations",
        36_500,
        [
            post("/jobs", lambda _, days: {"definition": "work", "delay": days * DAY}),
            query(
                "select mainspring.enqueue('work', delay => %s)",
                lambda _, days: [timedelta(days=days)],
            ),
            python(lambda bench, days: bench.app.enqueue("work", {}, delay=timedelta(days=days))),
        ],
        "",
        codes=OPTION,
    ),
    *ways(
        "job: jobs enqueued in one call",
        10_000,
        [
            post("/jobs/many", lambda _, n: {"definition": "work", "payloads": [{}] * n}),
            query("select 1", lambda *_: []),
            python(lambda *_: None),
        ],
        "10000",
        codes=OPTION,
    )[:1],
    Case(
        "job: jobs enqueued in one call",
        "SQL",
        1_000_000,
        query(
            "select mainspring.check_bulk(array_fill('{}'::jsonb, array[%s::integer]), null)",
            lambda _, count: [count],
        ),
        "MS003",
        "1000000",
        most=10_000_000,
    ),
    Case(
        "job: jobs enqueued in one call",
        "Python",
        1_000_000,
        many,
        "invalid_option",
        "1,000,000",
    ),
    Case(
        "job: parents (`after`)",
        "REST",
        1000,
        post(
            "/jobs", lambda bench, count: {"definition": "work", "after": parents_of(bench, count)}
        ),
        "422",
        "1000",
    ),
    *ways(
        "job: parents (`after`)",
        10_000,
        [
            post("/jobs", lambda *_: {}),
            query(
                "select mainspring.enqueue('work', tenant => 'acme', after => %s)",
                lambda b, n: [parents_of(b, n)],
            ),
            python(lambda _, n: EnqueueOptions(after=tuple(map(JobId, range(n))))),
        ],
        "10",
        codes=OPTION,
        most=100_000,
    )[1:],
    *ways(
        "job: payload, with its secrets",
        MIB,
        [
            post("/jobs", lambda _, size: {"definition": "work", "payload": payload(size)}),
            query("select mainspring.enqueue('work', %s)", lambda _, size: [Jsonb(payload(size))]),
            # Its text has no blank, unlike that of PostgreSQL.
            python(lambda bench, size: bench.app.enqueue("work", payload(size + 1))),
        ],
        "",
        codes=("413", "MS002", "payload_too_large"),
        most=9 * MIB,
    ),
    *ways("job: queue", 500, option("queue", text), "500", codes=OPTION),
    Case(
        "job: reason of a cancellation",
        "REST",
        10_000,
        lambda bench, count: bench.rest(
            "POST", f"/jobs/{bench.job()}/cancel", {"reason": text(count)}
        ),
        "422",
        "10000",
    ),
    Case(
        "job: reason of a cancellation",
        "SQL",
        10_000,
        query(f"select mainspring.cancel(%s, %s, '{TENANT}')", lambda b, n: [b.job(), text(n)]),
        "MS003",
        "10000",
    ),
    Case(
        "job: reason of a cancellation",
        "Python",
        10_000,
        lambda bench, count: cancel(bench, bench.job(), count),
        "invalid_option",
        "10000",
    ),
    *ways("job: tags", 50, option("tags", lambda count: ["a"] * count), "50", codes=OPTION),
]
