"""Templates are filled in for each slot, also when several fire at once."""

from datetime import timedelta
from typing import Any

import psycopg

from mainspring import Mainspring
from tests.support.schedules import HOUR, insert_schedule, jobs, miss, scheduling
from tests.support.waiting import await_until


async def payloads_after(
    app: Mainspring, connection: psycopg.Connection, missed: timedelta, **columns: Any
) -> list[tuple[Any, Any]]:
    """What the slots that were missed gave to their jobs, each with the slot itself."""
    payload = {"slot": "{{slot_at}}", "missed": "{{missed}}"}
    insert_schedule(connection, every=HOUR, payload=payload, **columns)
    miss(connection, "tick", missed)
    async with scheduling(app):
        found = await await_until(lambda: jobs(connection))
    return [(job["payload"], job["slot_at"]) for job in found]


async def test_each_slot_that_is_caught_up_on_has_its_own_payload(app, connection):
    found = await payloads_after(app, connection, 2.5 * HOUR, catch_up="all")

    expected = [f"{slot:%Y-%m-%dT%H:%M:%S.%fZ}" for _, slot in found]
    assert len(found) == 3
    assert [payload["slot"] for payload, _ in found] == expected


async def test_the_newest_slot_knows_how_many_were_missed(app, connection):
    found = await payloads_after(app, connection, 4.5 * HOUR, catch_up="all", catch_up_limit=2)

    assert [payload["missed"] for payload, _ in found] == [0, 3]
