"""What is sent for each row of docs/reference/budgets.md: as much as the limit, and more.

A hundred times a megabyte takes PostgreSQL and the client seconds to pass on, before anything of
ours sees it. So of large inputs `most` is sent, and the neighbours' test sends the rest over HTTP.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.api.responses import write_cursor
from mainspring.domain.commands import read_command
from mainspring.domain.definitions import Definition
from mainspring.domain.flows import Step, ensure_size, in_order
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId
from mainspring.services.backfills import ensure_size as ensure_backfill_size
from mainspring.services.enqueueing import _ensure_for_many
from mainspring.store.jobs import DEFAULT_OPTIONS
from tests.budgets.bench import TENANT, Bench, Refusal

KIB, MIB = 1024, 1024 * 1024
DAY = 24 * 3600
FACTOR = 100
PROGRESS = '{"current":1.0,"total":null,"message":null,"data":""}'

Send = Callable[[Bench, int], Refusal | None]


@dataclass(frozen=True)
class Case:
    """One way to send the input of a row. `limit` units are accepted; more are refused with the
    code and a text. `most` is sent in place of a hundred times the limit, where that cannot be."""

    row: str
    way: str
    limit: int
    send: Send
    code: str
    text: str
    most: int | None = None

    @property
    def far(self) -> int:
        return self.most or self.limit * FACTOR

    def __str__(self) -> str:
        return f"{self.row} ({self.way})"


_NUMBERS = itertools.count(1)


def text(length: int) -> str:
    return "x" * length


def unique(length: int) -> str:
    return f"k{next(_NUMBERS)}".ljust(length, "x")


def payload(size: int) -> dict[str, str]:
    """An object of so many bytes, as PostgreSQL writes it."""
    return {"x": text(size - len('{"x": ""}'))}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def post(path: str, make: Callable[[Bench, int], Any], role: str = "operator") -> Send:
    return lambda bench, count: bench.rest("POST", path, make(bench, count), role=role)


def get(path: Callable[[int], str]) -> Send:
    return lambda bench, count: bench.rest("GET", path(count))


def filtered(name: str) -> Send:
    return get(lambda count: f"/jobs?{name}={text(count)}")


def query(statement: str, make: Callable[[Bench, int], list[Any]]) -> Send:
    return lambda bench, count: bench.sql(statement, *make(bench, count))


def python(call: Callable[[Bench, int], object]) -> Send:
    return lambda bench, count: bench.python(lambda: call(bench, count))


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


def ways(
    row: str, limit: int, sends: list[Send], said: str, *, codes: tuple[str, str, str], **more: Any
) -> list[Case]:
    named = zip(("REST", "SQL", "Python"), sends, codes, strict=True)
    return [Case(row, way, limit, send, code, said, **more) for way, send, code in named]


OPTION = ("422", "MS003", "invalid_option")
DEFINITION = ("422", "MS050", "invalid_definition")
SCHEDULE = ("422", "MS041", "invalid_schedule")


def definition(field: str, make: Callable[[int], Any], **others: Any) -> list[Send]:
    """A field of a definition over REST, SQL and Python."""
    columns = [field, *others]
    marks = ", ".join(["%s"] * len(columns))

    def body(bench: Bench, count: int) -> dict[str, Any]:
        base = {"key": bench.name(), "kind": "sql", "function": "public.noop"}
        return {**base, **others, field: make(count)}

    def row(bench: Bench, count: int) -> list[Any]:
        values = [make(count), *others.values()]
        return [bench.name(), *(Jsonb(each) if isinstance(each, dict) else each for each in values)]

    return [
        post("/definitions", body),
        query(
            f"insert into mainspring.definitions (key, kind, {', '.join(columns)})"
            f" values (%s, 'python', {marks})",
            row,
        ),
        python(lambda bench, count: Definition(bench.name(), **{field: make(count)}, **others)),
    ]


def schedule(
    field: str, make: Callable[[int], Any], in_sql: Any = None, **others: Any
) -> list[Send]:
    """A field of a schedule over REST, SQL and Python."""
    timing = {} if field in ("cron", "every") else {"cron": "@yearly"}
    given = {**timing, **others}

    def body(bench: Bench, count: int) -> dict[str, Any]:
        return {
            "name": bench.name(),
            "definition": "work",
            "enabled": False,
            **given,
            field: make(count),
        }

    def row(bench: Bench, count: int) -> list[Any]:
        value = (in_sql or make)(count)
        stored = Jsonb(value) if isinstance(value, dict) else value
        return [bench.name(), "work", stored, *given.values()]

    names = ["name", "definition", field, *given]
    marks = ", ".join(["%s"] * len(names))
    insert = f"insert into mainspring.schedules ({', '.join(names)}) values ({marks})"

    def create(bench: Bench, count: int) -> object:
        value = (in_sql or make)(count)
        return bench.app.schedules.create(bench.name(), "work", **given, **{field: value})

    return [post("/schedules", body), query(insert, row), python(create)]


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


def report(kind: str, make: Callable[[int], Any]) -> Send:
    def send(bench: Bench, count: int) -> Refusal | None:
        path, body = bench.claimed()
        return bench.rest("POST", f"{path}/{kind}", {**body, **make(count)}, role="worker")

    return send


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


def parents_of(bench: Bench, count: int) -> list[int]:
    last = bench.job(count=min(count, 1000))
    return [max(last - number, 1) for number in range(count)]


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


def schema(document: Callable[[int], dict[str, Any]]) -> Send:
    return definition("arg_schema", document)[0]


def schema_of(size: int) -> dict[str, Any]:
    """A schema of so many bytes, as PostgreSQL writes it."""
    return {"title": text(size - len('{"title": ""}'))}


def calendar(dates: int) -> dict[str, Any]:
    first = 730_000
    return {"dates": [date.fromordinal(first + number).isoformat() for number in range(dates)]}


def backfill(bench: Bench, count: int) -> Refusal | None:
    name = bench.name()
    bench.ask(
        "POST",
        "/schedules",
        {"name": name, "definition": "work", "cron": "@yearly", "enabled": False},
    )
    asked = {
        "start": "2020-01-01T00:00:00Z",
        "end": "2020-01-02T00:00:00Z",
        "limit": count,
        "dry_run": True,
    }
    return bench.rest("POST", f"/schedules/{name}/backfill", asked)


def preview(bench: Bench, count: int) -> Refusal | None:
    name = bench.name()
    bench.ask(
        "POST",
        "/schedules",
        {"name": name, "definition": "work", "cron": "@yearly", "enabled": False},
    )
    return bench.rest("GET", f"/schedules/{name}/preview?count={count}")


def disable(bench: Bench, count: int) -> Refusal | None:
    name = bench.name()
    bench.ask(
        "POST",
        "/schedules",
        {"name": name, "definition": "work", "cron": "@yearly", "enabled": False},
    )
    return bench.rest("POST", f"/schedules/{name}/disable", {"reason": text(count)})


def cron_of(length: int) -> str:
    """A list of minutes with so many characters."""
    minutes = ",".join(str(number % 60) for number in range(10, 60))
    rest = " * * * *"
    return (minutes + rest).ljust(length) if length >= 160 else minutes


def cursor(bench: Bench, count: int) -> Refusal | None:
    """One that a list could have given, with so many characters."""
    place = write_cursor("x" * (count * 3 // 4 - 2))
    return bench.rest("GET", f"/definitions?cursor={place.ljust(count, 'x')[:count]}")


def deep_context(levels: int) -> str:
    return '{"a": ' + "[" * (levels - 1) + "1" + "]" * (levels - 1) + "}"


def cancel(bench: Bench, job_id: int, count: int) -> Refusal | None:
    return bench.python(lambda: bench.app.jobs.cancel(job_id, reason=text(count), tenant_id=TENANT))


def deep_request(levels: int) -> bytes:
    lists = levels - 2
    return b'{"definition": "work", "payload": {"a": %s%s}}' % (b"[" * lists, b"]" * lists)


def many(bench: Bench, count: int) -> Refusal | None:
    """Nothing is enqueued: what is asked is checked first, and the limit itself takes a minute."""
    return bench.python(lambda: _ensure_for_many(DEFAULT_OPTIONS, count, None))


def claim(bench: Bench, asked: dict[str, Any]) -> Refusal | None:
    made = bench.ask("POST", "/work/workers", {"name": "w", "queues": ["none"]}, role="worker")
    path = f"/work/workers/{made.json()['worker_id']}/claim"
    return bench.rest("POST", path, asked, role="worker")


def claiming(make: Callable[[int], dict[str, Any]]) -> Send:
    return lambda bench, count: claim(bench, make(count))


def whole_request(bench: Bench, size: int) -> Refusal | None:
    """A request of exactly so many bytes. One of the limit is read and refused for its payload."""
    empty = len('{"definition":"work","payload":{"x":""}}')
    body = {"definition": "work", "payload": {"x": text(size - empty)}}
    refused = bench.rest("POST", "/jobs", body)
    return None if refused is not None and "payload" in refused.text else refused


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
    Case("cursor", "REST", 1000, cursor, "422", "cursor", most=50_000),
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
    *(
        Case(
            "filter: text (queue, definition, tag, error, creator)",
            f"REST, {name}",
            500,
            filtered(name),
            "422",
            "500",
        )
        for name in ("queue", "definition", "tag", "error", "created_by")
    ),
    Case(
        "filter: text (queue, definition, tag, error, creator)",
        "Python",
        500,
        python(lambda bench, count: bench.app.jobs.list(queue=text(count))),
        "invalid_option",
        "500",
    ),
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
    Case("page: `limit`", "REST", 1000, get(lambda count: f"/jobs?limit={count}"), "422", "1000"),
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
        "request: nesting of its body",
        "REST",
        200,
        # Two levels are the body and the payload.
        post("/jobs", lambda _, levels: deep_request(levels)),
        "422",
        "200",
        most=20_000,
    ),
    Case(
        "request: size",
        "REST",
        8 * MIB,
        whole_request,
        "413",
        "8,388,608",
        most=16 * MIB,
    ),
    Case(
        "schedule: backfill, payloads together",
        "Python",
        64 * MIB,
        python(lambda _, count: ensure_backfill_size(count)),
        "invalid_schedule",
        "67,108,864",
    ),
    Case("schedule: backfill, slots", "REST", 10_000, backfill, "422", "10000"),
    *ways("schedule: calendar", 1000, schedule("calendar", calendar), "", codes=SCHEDULE)[::2],
    Case(
        "schedule: calendar",
        "SQL",
        256 * KIB,
        query(
            "insert into mainspring.schedules (name, definition, cron, enabled, calendar)"
            " values (%s, 'work', '@yearly', false, %s)",
            lambda b, n: [b.name(), Jsonb({"country": text(n - len('{"country": ""}'))})],
        ),
        "MS041",
        "262144",
        most=4 * MIB,
    ),
    *ways(
        "schedule: condition or gauge in SQL",
        10_000,
        schedule("condition_sql", "select true".ljust),
        "10",
        codes=SCHEDULE,
    ),
    *ways("schedule: cron", 200, schedule("cron", cron_of), "", codes=SCHEDULE),
    *ways("schedule: description", 10_000, schedule("description", text), "10", codes=SCHEDULE),
    *ways(
        "schedule: interval",
        36_500,
        schedule("every", lambda days: days * DAY, lambda days: timedelta(days=days)),
        "",
        codes=SCHEDULE,
    ),
    *ways(
        "schedule: launcher, role of the condition",
        500,
        schedule("launcher", text),
        "500",
        codes=SCHEDULE,
    )[:2],
    *ways(
        "schedule: name",
        200,
        [
            post(
                "/schedules",
                lambda b, n: {"name": b.name(n), "definition": "work", "cron": "@yearly"},
            ),
            query(
                "insert into mainspring.schedules (name, definition, cron)"
                " values (%s, 'work', '@yearly')",
                lambda b, n: [b.name(n)],
            ),
            python(lambda b, n: b.app.schedules.create(b.name(n), "work", cron="@yearly")),
        ],
        "200",
        codes=SCHEDULE,
    ),
    *ways(
        "schedule: payload",
        MIB,
        schedule("payload", payload),
        "",
        codes=SCHEDULE,
        most=9 * MIB,
    ),
    Case("schedule: preview", "REST", 1000, preview, "422", "1000"),
    Case("schedule: reason it is disabled", "REST", 10_000, disable, "422", "10000"),
    *ways(
        "schedule: time zone",
        64,
        schedule(
            "zone", lambda count: "America/Argentina/ComodRivadavia" if count <= 64 else text(count)
        ),
        "",
        codes=SCHEDULE,
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
        "worker over the API: error",
        "REST",
        100_000,
        report("fail", lambda count: {"error": text(count)}),
        "422",
        "100000",
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

_TELEMETRY = "tests/test_telemetry.py"
_CONNECTIONS = "tests/api/test_connections.py"
_DISPATCH = "tests/runtime/dispatcher/test_budgets.py"
_SCHEMAS = "tests/domain/test_schemas.py"
ELSEWHERE = {
    "bulk operation: jobs counted before it starts": "tests/api/test_operations.py::"
    "test_a_count_that_would_look_at_too_much_says_so",
    "command: output": "tests/domain/jobs/test_tails.py::"
    "test_the_tail_is_that_of_the_whole_however_it_came",
    "connection: body of a request": f"{_CONNECTIONS}::test_a_body_that_never_comes_is_refused",
    "connection: header of a request": f"{_CONNECTIONS}::"
    "test_headers_that_never_end_end_the_connection",
    "connections": f"{_CONNECTIONS}::test_too_many_connections_of_one_address_are_refused",
    "error: message of an exception": "tests/runtime/worker/test_failures.py::"
    "test_an_endless_message_is_cut",
    "error: stored text": "tests/domain/jobs/test_outcomes.py::test_longer_text_loses_its_middle",
    "error: traceback": "tests/runtime/worker/test_failures.py::"
    "test_a_traceback_has_so_many_frames_at_most",
    "event: all its triggers together": f"{_DISPATCH}::"
    "test_hundreds_of_copies_of_an_event_fail_and_nobody_waits",
    "event: triggers that match it": f"{_DISPATCH}::test_an_event_is_given_to_500_triggers",
    "event: writing its jobs": f"{_DISPATCH}::test_an_event_that_cannot_be_written_fails_by_itself",
    "job: results stored together": "tests/runtime/worker/test_reporter.py::"
    "test_a_batch_has_neither_too_many_reports_nor_too_many_bytes",
    "log line: value of a field": f"{_TELEMETRY}::test_a_line_is_not_endless",
    "log lines of one cause (event, definition, kind of error, place)": f"{_TELEMETRY}::"
    "test_more_within_a_second_are_counted",
    "log: causes in one second": f"{_TELEMETRY}::test_very_many_causes_count_as_one",
    "page: a list of approvals, audit entries, definitions, events, jobs, schedules or triggers": (
        "tests/api/test_large_lists.py::test_a_page_has_a_bounded_size"
    ),
    "page: attempts of a job": "tests/api/test_large_lists.py::"
    "test_of_many_attempts_the_latest_are_whole",
    "page: error and progress message of a job in a list": "tests/api/test_job_lists.py::"
    "test_a_list_of_large_jobs_is_short",
    "page: jobs looked at for a filter": "tests/api/test_large_lists.py::"
    "test_a_page_looks_at_so_many_jobs",
    "payload claimed over HTTP: nesting": "tests/api/test_depth.py::"
    "test_what_plain_sql_nests_deeply_can_be_listed_and_claimed_around",
    "payload template: result": "tests/services/test_triggers.py::"
    "test_a_trial_holds_to_the_size_of_payloads",
    "payload: check against its schema": "tests/api/test_budgets.py::"
    "test_hundreds_of_thousands_of_wrong_items_keep_nobody_waiting",
    "payload: problems that are named": f"{_SCHEMAS}::"
    "test_all_problems_of_up_to_100_values_are_counted",
    "regular expression in a JSON Schema": f"{_SCHEMAS}::test_no_pattern_can_hang",
    "requests of one caller": "tests/api/test_rate_limits.py::"
    "test_spellings_of_a_header_are_one_caller",
    "stream of a job: result": "tests/api/test_streams.py::"
    "test_a_result_is_told_at_the_end_unless_it_is_too_large",
}
"""Rows whose input is no request, or is cut and not refused: the test of each."""
