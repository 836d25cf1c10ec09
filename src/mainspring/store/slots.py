"""Statements on slots: triggers by hand, backfill, figures and history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_mappings
from mainspring.db.statements import load
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.types import JobId, SlotTrigger, TenantId
from mainspring.store.due_schedules import Applied, DueSchedule

_STATEMENTS = load("slots")
_BATCH = 5000


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a schedule as it stands; `run_state` is None while its job has not ended.

    `message` and `details` are those of the run's result, or all of a result that has neither;
    details over 8 KiB are omitted."""

    scheduled_for: datetime
    outcome: SlotOutcome
    trigger: SlotTrigger
    reason: str | None
    missed: int
    job_id: JobId | None
    fired_at: datetime
    lateness_seconds: float
    run_state: str | None
    seconds: float | None
    gauge_value: float | None
    started_at: datetime | None
    finished_at: datetime | None
    message: str | None
    details: Any
    is_details_omitted: bool


async def pending(session: Session, *, identity: str, limit: int) -> list[DueSchedule]:
    """Slots that people asked for, with the schedules; they are ours for a while."""
    params = {"identity": identity, "limit": limit}
    rows = await fetch_mappings(session, _STATEMENTS["pending_slots"].sql, params)
    return [DueSchedule.of(row, row["scheduled_for"]) for row in rows]


async def apply_trigger(session: Session, plan: Mapping[str, Any]) -> Applied | None:
    """What came of the slot; None if someone decided it before."""
    params = {"plan": orjson.dumps(plan).decode()}
    cursor = await session.execute(_STATEMENTS["apply_trigger"].sql, params)
    row = await cursor.fetchone()
    return Applied.of(*row) if row else None


async def count_runs(session: Session) -> bool:
    """Add ended runs to the figures; whether there may be more."""
    cursor = await session.execute(_STATEMENTS["count_runs"].sql, {"limit": _BATCH})
    return cursor.rowcount > 0


async def list_slots(
    session: Session,
    tenant_id: TenantId,
    name: str,
    *,
    before: datetime | None = None,
    outcomes: Sequence[SlotOutcome] = (),
    limit: int = 50,
) -> list[Slot]:
    """Newest first; page on with the last instant as `before`."""
    params = {
        "tenant_id": tenant_id,
        "name": name,
        "before": before,
        "outcomes": [str(outcome) for outcome in outcomes] or None,
        "limit": limit,
    }
    rows = await fetch_mappings(session, _STATEMENTS["list_slots"].sql, params)
    return [_slot(row) for row in rows]


async def get(
    session: Session, tenant_id: TenantId, name: str, *, scheduled_for: datetime
) -> Slot | None:
    params = {"tenant_id": tenant_id, "name": name, "scheduled_for": scheduled_for}
    rows = await fetch_mappings(session, _STATEMENTS["get_slot"].sql, params)
    return _slot(rows[0]) if rows else None


async def claimed(
    session: Session, tenant_id: TenantId, name: str, *, slots: Sequence[datetime]
) -> set[datetime]:
    """Those of the slots that have their job."""
    params = {"tenant_id": tenant_id, "name": name, "slots": list(slots)}
    rows = await fetch_all(session, _STATEMENTS["claimed_slots"].sql, params)
    return {slot for (slot,) in rows}


async def backfill(
    session: Session,
    tenant_id: TenantId,
    name: str,
    *,
    slots: Sequence[datetime],
    payloads: Sequence[Mapping[str, Any]] | None = None,
) -> list[tuple[datetime, JobId]]:
    """The slots that were filled, each with its job; payloads are the schedule's own unless given a
    slot each."""
    params = {
        "tenant_id": tenant_id,
        "name": name,
        "slots": list(slots),
        "payloads": None
        if payloads is None
        else [orjson.dumps(each).decode() for each in payloads],
    }
    rows = await fetch_all(session, _STATEMENTS["backfill"].sql, params)
    return [(slot.astimezone(UTC), JobId(job_id)) for slot, job_id in rows]


def _slot(row: Mapping[str, Any]) -> Slot:
    return Slot(
        scheduled_for=row["scheduled_for"],
        outcome=SlotOutcome(row["outcome"]),
        trigger=SlotTrigger(row["trigger"]),
        reason=row["reason"],
        missed=row["missed"],
        job_id=None if row["job_id"] is None else JobId(row["job_id"]),
        fired_at=row["fired_at"],
        lateness_seconds=row["lateness_seconds"],
        run_state=row["run_state"],
        seconds=row["seconds"],
        gauge_value=row["gauge_value"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        message=row["message"],
        details=row["details"],
        is_details_omitted=row["is_details_omitted"],
    )
