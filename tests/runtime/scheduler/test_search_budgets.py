"""Schedules whose next slot takes long to find: they are disabled, and nobody waits for them."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from mainspring import Mainspring
from tests.support import schedules
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

COUNT = 40
# It stood still for 13 s before; a thread that plans takes a part of the CPU.
SOON = 1.0
EVERY_SECOND = {"every": "1 second", "max_running": 1000, "overlap": "queue"}
REASONS = """
select distinct disabled_reason from mainspring.schedules
 where name like 'slow%' and not enabled
"""
DISABLED = "select count(*) from mainspring.schedules where name like 'slow%' and not enabled"


def calendar(number: int) -> dict[str, Any]:
    """Open for one minute a week."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    starts = [today + timedelta(weeks=week) for week in range(200)]
    return {
        "when_closed": "next",
        "blackouts": [
            {
                "from": start.isoformat(),
                "to": (start + timedelta(weeks=1, minutes=-1)).isoformat(),
                "label": f"blackout {number}",
            }
            for start in starts
        ],
    }


async def longest_stop(watched: "asyncio.Task[Any]") -> float:
    """For how long the event loop stood still until then."""
    worst = 0.0
    while not watched.done():
        began = time.monotonic()
        await asyncio.sleep(0)
        worst = max(worst, time.monotonic() - began)
    await watched
    return worst


async def test_searches_that_are_given_up_stop_no_other_schedule(
    app: Mainspring, connection: psycopg.Connection
):
    await app.tenants.acreate("acme")
    schedules.insert_schedule(connection, "tick", **EVERY_SECOND)

    async with scheduling(app):
        await await_until(lambda: "enqueued" in schedules.outcomes(connection, "tick"))
        for number in range(COUNT):
            facts = {"cron": "0 12 29 2 *", "calendar": calendar(number), "tenant_id": "acme"}
            schedules.insert_schedule(connection, f"slow {number}", **facts)
        all_disabled = await_until(lambda: connection.execute(DISABLED).fetchone() == (COUNT,))
        worst = await longest_stop(asyncio.create_task(all_disabled))

    ((reason,),) = connection.execute(REASONS).fetchall()
    assert "no slot was found within 1,500 steps" in reason
    assert worst < SOON
    assert set(schedules.outcomes(connection, "tick")) == {"enqueued"}


async def test_a_schedule_that_is_checked_is_disabled_too(
    app: Mainspring, connection: psycopg.Connection
):
    facts = {"cron": "0 12 29 2 *", "calendar": calendar(0), "condition_sql": "select true"}
    schedules.insert_due(connection, "slow", **facts)

    async with scheduling(app):
        await await_until(lambda: connection.execute(DISABLED).fetchone() == (1,))

    ((reason,),) = connection.execute(REASONS).fetchall()
    assert reason.startswith("calendar: closes so much")
