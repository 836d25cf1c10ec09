"""Statements on schedules: what people do with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain.filters import Several, texts
from mainspring.domain.schedules.model import ScheduleState
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.types import JobId, TenantId
from mainspring.store.rows.schedules import read_gauge, read_spec

_STATEMENTS = load("schedules")
_NEVER = "infinity"
_INSTANTS = (
    "at",
    "starts_at",
    "ends_at",
    "paused_until",
    "anchor_at",
    "next_run_at",
    "next_slot_at",
    "last_slot_at",
    "last_enqueued_at",
    "last_skipped_at",
    "last_failed_at",
    "gauge_read_at",
    "created_at",
    "updated_at",
)
_DURATIONS = (
    "every",
    "jitter",
    "misfire_grace",
    "catch_up_max_age",
    "run_timeout",
    "condition_timeout",
)


@dataclass(frozen=True, slots=True)
class Triggered:
    """What came of a trigger by hand; a pending slot waits for a scheduler to check it."""

    outcome: SlotOutcome
    slot_at: datetime
    job_id: JobId | None
    message: str


async def create(session: Session, tenant_id: TenantId, spec: Mapping[str, Any]) -> None:
    params = {"tenant_id": tenant_id, "spec": orjson.dumps(spec).decode()}
    await session.execute(_STATEMENTS["create_schedule"].sql, params)


async def update(
    session: Session, tenant_id: TenantId, name: str, *, changes: Mapping[str, Any]
) -> None:
    """Raises ScheduleNotFound."""
    params = {"tenant_id": tenant_id, "name": name, "changes": orjson.dumps(changes).decode()}
    await session.execute(_STATEMENTS["update_schedule"].sql, params)


async def declare(session: Session, specs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The name of each, and what came of it."""
    params = {"specs": orjson.dumps(list(specs)).decode()}
    rows = await fetch_all(session, _STATEMENTS["declare_schedules"].sql, params)
    return [(name, outcome) for name, outcome in rows]


async def delete(session: Session, tenant_id: TenantId, name: str) -> bool:
    """False if there is no such schedule."""
    params = {"tenant_id": tenant_id, "name": name}
    return await fetch_one(session, _STATEMENTS["delete_schedule"].sql, params) is not None


async def trigger(
    session: Session,
    tenant_id: TenantId,
    name: str,
    *,
    force: bool,
    slot: datetime | None = None,
) -> Triggered:
    """Raises ScheduleNotFound, and SlotClaimed for a slot that has its job."""
    params = {"tenant_id": tenant_id, "name": name, "force": force, "slot": slot}
    ((answer,),) = await fetch_all(session, _STATEMENTS["trigger_schedule"].sql, params)
    # Drivers differ in whether they parse JSON.
    facts = orjson.loads(answer) if isinstance(answer, str) else answer
    return Triggered(
        SlotOutcome(facts["outcome"]),
        datetime.fromisoformat(facts["slot_at"]).astimezone(UTC),
        facts["job_id"],
        facts["message"],
    )


async def get(session: Session, tenant_id: TenantId, name: str) -> ScheduleState | None:
    params = {"tenant_id": tenant_id, "name": name}
    row = await fetch_one(session, _STATEMENTS["get_schedule"].sql, params)
    return None if row is None else _read_state(row[0])


def _read_state(text: str) -> ScheduleState:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    for name in _DURATIONS:
        if facts[name] is not None:
            facts[name] = timedelta(seconds=facts[name])
    return _state(facts)


async def list_schedules(
    session: Session,
    tenant_id: TenantId | None,
    *,
    after: str | None = None,
    after_tenant: str | None = None,
    enabled: bool | None = None,
    definition: Several[str] = None,
    limit: int = 50,
) -> list[ScheduleState]:
    """By name; page on with the last name as `after`. Of all tenants if none is given, and then
    with its tenant as `after_tenant`."""
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "after_tenant": after_tenant,
        "enabled": enabled,
        "definitions": list(texts("definition", definition)) or None,
        "limit": limit,
    }
    rows = await fetch_mappings(session, _STATEMENTS["list_schedules"].sql, params)
    return [_state(row) for row in rows]


async def names(session: Session, tenant_id: TenantId) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["schedule_names"].sql, {"tenant_id": tenant_id})
    return [name for (name,) in rows]


def _state(row: Mapping[str, Any]) -> ScheduleState:
    spec, figures = read_spec(row), row["figures"]
    is_planned = row["next_slot_at"] is not None
    return ScheduleState(
        id=row["schedule_id"],
        spec=spec,
        anchor_at=row["anchor_at"],
        next_run_at=row["next_run_at"] if is_planned else None,
        next_slot_at=row["next_slot_at"],
        disabled_reason=row["disabled_reason"],
        retry_count=row["retry_count"],
        last_error=row["last_error"],
        last_slot_at=row["last_slot_at"],
        last_enqueued_at=row["last_enqueued_at"],
        last_skipped_at=row["last_skipped_at"],
        last_failed_at=row["last_failed_at"],
        gauge=read_gauge(spec, row),
        figures=figures,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
