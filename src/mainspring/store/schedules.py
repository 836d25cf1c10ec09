"""Statements on schedules: what people do with them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import FIELD_NAMES, ScheduleSpec, ScheduleState
from mainspring.domain.schedules.slots import CatchUp, Overlap
from mainspring.domain.types import TenantId

_STATEMENTS = load("schedules")
_NEVER = "infinity"
_INSTANTS = (
    "at",
    "starts_at",
    "ends_at",
    "paused_until",
    "anchor_at",
    "next_run_at",
    "last_slot_at",
    "last_enqueued_at",
    "last_skipped_at",
    "last_failed_at",
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


def create(tenant_id: TenantId, spec: Mapping[str, Any]) -> Call:
    """The row is (schedule_id,)."""
    params = {"tenant_id": tenant_id, "spec": orjson.dumps(spec).decode()}
    return Call(_STATEMENTS["create_schedule"].sql, params)


def update(tenant_id: TenantId, name: str, changes: Mapping[str, Any]) -> Call:
    """The row is (schedule_id,)."""
    params = {"tenant_id": tenant_id, "name": name, "changes": orjson.dumps(changes).decode()}
    return Call(_STATEMENTS["update_schedule"].sql, params)


def declare(specs: Sequence[Mapping[str, Any]]) -> Call:
    """Each row is (name, what came of it)."""
    return Call(_STATEMENTS["declare_schedules"].sql, {"specs": orjson.dumps(list(specs)).decode()})


def delete(tenant_id: TenantId, name: str) -> Call:
    """One row if there was such a schedule."""
    params = {"tenant_id": tenant_id, "name": name}
    return Call(_STATEMENTS["delete_schedule"].sql, params)


def trigger(tenant_id: TenantId, name: str, *, force: bool) -> Call:
    """The row is (what came of it, as a dict)."""
    params = {"tenant_id": tenant_id, "name": name, "force": force}
    return Call(_STATEMENTS["trigger_schedule"].sql, params)


def get(tenant_id: TenantId, name: str) -> Call:
    """The row is (the schedule as text,), for `read_state`; no row if there is none."""
    params = {"tenant_id": tenant_id, "name": name}
    return Call(_STATEMENTS["get_schedule"].sql, params)


def read_state(text: str) -> ScheduleState:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    for name in _DURATIONS:
        if facts[name] is not None:
            facts[name] = timedelta(seconds=facts[name])
    return _state(facts)


async def list_schedules(
    connection: AsyncConnection[Any],
    tenant_id: TenantId | None,
    *,
    after: str | None = None,
    after_tenant: str | None = None,
    enabled: bool | None = None,
    definition: str | None = None,
    limit: int = 50,
) -> list[ScheduleState]:
    """By name; page on with the last name as `after`. Of all tenants if none is given, and then
    with its tenant as `after_tenant`."""
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "after_tenant": after_tenant,
        "enabled": enabled,
        "definition": definition,
        "limit": limit,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_STATEMENTS["list_schedules"].sql, params)
        return [_state(row) for row in await cursor.fetchall()]


def names(tenant_id: TenantId) -> Call:
    """Each row is (name,)."""
    return Call(_STATEMENTS["schedule_names"].sql, {"tenant_id": tenant_id})


def read_spec(row: Mapping[str, Any]) -> ScheduleSpec:
    facts = {name: row[name] for name in FIELD_NAMES}
    facts["dst_gap"], facts["dst_fold"] = DstGap(row["dst_gap"]), DstFold(row["dst_fold"])
    facts["catch_up"], facts["overlap"] = CatchUp(row["catch_up"]), Overlap(row["overlap"])
    return ScheduleSpec(**facts)


def _state(row: Mapping[str, Any]) -> ScheduleState:
    figures = row["figures"]
    is_planned = row["next_slot_at"] is not None
    return ScheduleState(
        id=row["schedule_id"],
        spec=read_spec(row),
        anchor_at=row["anchor_at"],
        next_run_at=row["next_run_at"] if is_planned else None,
        disabled_reason=row["disabled_reason"],
        retry_count=row["retry_count"],
        last_error=row["last_error"],
        last_slot_at=row["last_slot_at"],
        last_enqueued_at=row["last_enqueued_at"],
        last_skipped_at=row["last_skipped_at"],
        last_failed_at=row["last_failed_at"],
        figures=figures,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
