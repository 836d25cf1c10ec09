"""Requests that take much to answer: those of another tenant are answered meanwhile."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import httpx
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.api import Api

# A request of another tenant beside a heavy one, which took ten seconds each before.
SOON = 1.0


async def beside(api: Api, heavy: Awaitable[httpx.Response]) -> tuple[httpx.Response, float]:
    """The answer to a heavy request, and the longest wait of another tenant meanwhile."""
    asked = asyncio.ensure_future(heavy)
    worst = 0.0
    while True:
        began = time.monotonic()
        answer = await api.get("/queues", role="viewer", tenant="acme")
        worst = max(worst, time.monotonic() - began)
        assert answer.status_code == 200
        if asked.done():
            return await asked, worst


@pytest.fixture
def definition(connection: psycopg.Connection) -> str:
    connection.execute(
        "insert into mainspring.definitions (key, kind, arg_schema) values ('sum', 'python',"
        """ '{"properties": {"numbers": {"items": {"type": "integer"}}}}')"""
    )
    return "sum"


async def test_hundreds_of_thousands_of_wrong_items_keep_nobody_waiting(api: Api, definition: str):
    payload = {"numbers": ["x"] * 250_000}
    asked = {"definition": definition, "payload": payload}

    answer, worst = await beside(api, api.post("/jobs", asked, role="member"))

    assert answer.status_code == 422
    assert "payload/numbers/0" in answer.json()["detail"]
    assert "there may be more" in answer.json()["detail"]
    assert worst < SOON


async def test_a_trial_of_a_trigger_with_thousands_of_keys_keeps_nobody_waiting(
    api: Api, definition: str, connection: psycopg.Connection
):
    # As plain SQL can write it.
    connection.execute(
        "insert into mainspring.triggers (name, event, definition, payload)"
        " select 'bomb', 'a', 'sum', jsonb_object_agg('k' || number, '{{event}}')"
        " from generate_series(1, 3000) as number"
    )
    asked = {"context": {"rows": [[number] for number in range(7000)]}}

    answer, worst = await beside(api, api.post("/triggers/bomb/test", asked, role="viewer"))

    assert answer.status_code == 422
    assert worst < SOON


async def test_a_trigger_with_thousands_of_keys_is_refused(api: Api, definition: str):
    payload = {f"k{number}": "{{event}}" for number in range(3000)}
    asked = {"name": "bomb", "event": "a", "definition": definition, "payload": payload}

    answer = await api.post("/triggers", asked, role="admin")

    assert answer.status_code == 422
    assert "at most 200 expressions" in answer.json()["detail"]


async def test_a_preview_of_leap_days_keeps_nobody_waiting(api: Api, definition: str):
    asked = {"name": "leap", "definition": definition, "cron": "0 0 29 2 *"}
    assert (await api.post("/schedules", asked, role="admin")).status_code == 201

    answer, worst = await beside(api, api.get("/schedules/leap/preview?limit=1000", role="viewer"))

    assert answer.status_code == 200
    assert len(answer.json()["items"]) in (24, 25)
    assert worst < SOON / 2


async def test_a_schema_over_its_budget_is_refused(api: Api):
    schema = {"properties": {"a": {"enum": ["x" * 100] * 1000}}}
    asked = {"key": "far", "kind": "sql", "function": "far", "arg_schema": schema}

    answer = await api.post("/definitions", asked)

    assert answer.status_code == 422
    assert "at most 65,536 are allowed" in answer.json()["detail"]


async def test_too_many_steps_are_counted_before_any_is_read(api: Api):
    answer = await api.post("/flows", {"name": "f", "steps": [1] * 10_001})

    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "at most 10,000 items, not 10,001" in answer.json()["detail"]


async def test_a_retry_with_thousands_of_wrong_items_keeps_nobody_waiting(
    api: Api, definition: str
):
    made = await api.post(
        "/jobs", {"definition": definition, "payload": {"numbers": [1]}}, role="member"
    )
    path = f"/jobs/{made.json()['id']}"
    await api.post(f"{path}/cancel", {}, role="member")
    payload = {"numbers": ["x"] * 250_000}

    answer, worst = await beside(
        api, api.post(f"{path}/retry", {"payload": payload}, role="member")
    )

    assert answer.status_code == 422
    assert "payload/numbers/0" in answer.json()["detail"]
    assert worst < SOON


async def test_a_schedule_with_thousands_of_wrong_items_keeps_nobody_waiting(
    api: Api, definition: str
):
    payload = {"numbers": ["x"] * 250_000}
    asked = {"name": "a", "definition": definition, "cron": "@daily", "payload": payload}

    answer, worst = await beside(api, api.post("/schedules", asked, role="admin"))

    assert answer.status_code == 422
    assert worst < SOON


@pytest.fixture
def choices(connection: psycopg.Connection) -> str:
    """A definition that compares each item with 2,000 numbers."""
    schema = {"properties": {"n": {"items": {"anyOf": [{"const": i} for i in range(2000)]}}}}
    connection.execute(
        "insert into mainspring.definitions (key, kind, arg_schema)"
        " values ('choices', 'python', %s)",
        [Jsonb(schema)],
    )
    return "choices"


@pytest.mark.parametrize("way", ["job", "jobs", "flow", "retry", "schedule", "trigger"])
async def test_a_payload_that_would_take_a_minute_to_check_is_refused_at_once(
    api: Api, choices: str, way: str
):
    small = await api.post("/jobs", {"definition": choices, "payload": {}}, role="member")
    path = f"/jobs/{small.json()['id']}"
    await api.post(f"{path}/cancel", {}, role="member")
    payload = {"n": [1999] * 200_000}
    asked = {"definition": choices, "payload": payload}
    heavy = {
        "job": ("/jobs", asked),
        "jobs": ("/jobs/many", {"definition": choices, "payloads": [{"n": [1999] * 20}] * 9999}),
        "flow": ("/flows", {"name": "f", "steps": [{"name": "a", **asked}]}),
        "retry": (f"{path}/retry", {"payload": payload}),
        "schedule": ("/schedules", {"name": "a", "cron": "@daily", **asked}),
        "trigger": ("/triggers", {"name": "a", "event": "b", **asked}),
    }[way]
    began = time.process_time()

    answer, worst = await beside(api, api.post(heavy[0], heavy[1], role="admin"))

    assert answer.status_code == 422, answer.text
    assert "steps" in answer.json()["detail"] or way == "trigger"
    assert time.process_time() - began < 5
    assert worst < SOON


# Schedules


def blackouts(number: int) -> list[dict[str, str]]:
    """Weeks of which only the last minute is open."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    starts = [today + timedelta(weeks=week) for week in range(200)]
    lasts = timedelta(weeks=1, minutes=-1)
    label = f"blackout {number}"
    return [
        {"from": start.isoformat(), "to": (start + lasts).isoformat(), "label": label}
        for start in starts
    ]


SCHEDULE = {"name": "leap", "definition": "work", "cron": "0 12 29 2 *"}


async def test_a_schedule_whose_next_slot_takes_too_long_to_find_is_refused(api: Api):
    calendar = {"when_closed": "next", "blackouts": blackouts(0)}
    asked = api.post("/schedules", {**SCHEDULE, "calendar": calendar}, role="admin")

    answer, worst = await beside(api, asked)

    assert answer.status_code == 422
    assert "no slot was found within 1,500 steps" in answer.json()["detail"]
    assert worst < SOON


async def test_a_schedule_cannot_be_changed_so_that_its_slots_take_too_long(api: Api):
    await api.post("/schedules", SCHEDULE, role="admin")
    calendar = {"when_closed": "next", "blackouts": blackouts(0)}

    answer = await api.ask("PATCH", "/schedules/leap", json={"calendar": calendar}, role="admin")

    assert answer.status_code == 422
    assert "use fewer or shorter blackouts" in answer.json()["detail"]


async def test_a_list_searches_for_no_slot(api: Api, connection: psycopg.Connection):
    # As plain SQL can write them; each takes half a second to search through.
    for number in range(16):
        connection.execute(
            "insert into mainspring.schedules (name, definition, cron, calendar)"
            " values (%s, 'work', '0 12 29 2 *', %s)",
            (f"s{number}", Jsonb({"when_closed": "next", "blackouts": blackouts(number)})),
        )

    answer, worst = await beside(api, api.get("/schedules", role="viewer"))

    assert [each["next_run_at"] for each in answer.json()["items"]] == [None] * 16
    assert worst < SOON / 2
