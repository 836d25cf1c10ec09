"""Schedules and their calendars."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from mainspring.services.backfills import ensure_size as ensure_backfill_size
from tests.budgets.bench import Bench, Refusal
from tests.budgets.cases.shared import (
    DAY,
    KIB,
    MIB,
    Case,
    Send,
    payload,
    post,
    python,
    query,
    text,
    ways,
)

SCHEDULE = ("422", "MS041", "invalid_schedule")


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
            "is_enabled": False,
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


def calendar(dates: int) -> dict[str, Any]:
    first = 730_000
    return {"dates": [date.fromordinal(first + number).isoformat() for number in range(dates)]}


def backfill(bench: Bench, count: int) -> Refusal | None:
    name = bench.name()
    bench.ask(
        "POST",
        "/schedules",
        {"name": name, "definition": "work", "cron": "@yearly", "is_enabled": False},
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
        {"name": name, "definition": "work", "cron": "@yearly", "is_enabled": False},
    )
    return bench.rest("GET", f"/schedules/{name}/preview?limit={count}")


def disable(bench: Bench, count: int) -> Refusal | None:
    name = bench.name()
    bench.ask(
        "POST",
        "/schedules",
        {"name": name, "definition": "work", "cron": "@yearly", "is_enabled": False},
    )
    return bench.rest("POST", f"/schedules/{name}/disable", {"reason": text(count)})


def cron_of(length: int) -> str:
    """A list of minutes with so many characters."""
    minutes = ",".join(str(number % 60) for number in range(10, 60))
    rest = " * * * *"
    return (minutes + rest).ljust(length) if length >= 160 else minutes


CASES: list[Case] = [
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
]
