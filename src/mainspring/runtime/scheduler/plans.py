"""Plans carried out many at a time, past the one that the database refuses.

    200 plans ─ refused ─▶ halves ─▶ ... ─▶ one plan: its slots fail, with the reason

So a job that cannot be written, whatever the reason, is a failed slot of its schedule, and costs no
other schedule its slot.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.domain.batches import halves
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.sqlstates import is_locked, is_of_a_row
from mainspring.store import due_schedules
from mainspring.store.due_schedules import Applied

PlanFacts = Mapping[str, Any]


async def carry_out(
    connection: AsyncConnection[Any], plans: Sequence[PlanFacts]
) -> list[Applied | None]:
    """What came of each schedule; None if it was not as read any more, or is held by
    someone."""
    try:
        return await due_schedules.apply_plans(connection, plans)
    except psycopg.Error as error:
        if not is_of_a_row(error.sqlstate):
            raise
        if len(plans) == 1:
            return [await _fail(connection, plans[0], error)]
    first, second = halves(plans)
    return [*await carry_out(connection, first), *await carry_out(connection, second)]


async def _fail(
    connection: AsyncConnection[Any], plan: PlanFacts, cause: psycopg.Error
) -> Applied | None:
    if is_locked(cause.sqlstate):
        return None
    reason = str(cause).strip().partition("\n")[0]
    slots = [
        {**slot, "outcome": SlotOutcome.FAILED, "reason": reason}
        if slot["outcome"] == SlotOutcome.ENQUEUED
        else slot
        for slot in plan["slots"]
    ]
    try:
        (applied,) = await due_schedules.apply_plans(
            connection, [{**plan, "failure": reason, "slots": slots}]
        )
    except psycopg.Error as error:
        if not is_of_a_row(error.sqlstate):
            raise
        # Not even its failure can be written. It stays due, and the others go on.
        (name,) = await due_schedules.name_schedules(connection, [plan["schedule_id"]]) or [{}]
        slot = plan["slots"][-1]["at"] if plan["slots"] else None
        telemetry.event("check_failed", **name, slot=slot, error=str(error))
        return None
    return applied
