"""Statements on triggers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain import documents
from mainspring.domain.events import DispatchOutcome
from mainspring.domain.triggers import MOST_TRIGGERS, Trigger, TriggerState, UnknownPaths
from mainspring.domain.types import TenantId

_STATEMENTS = load("triggers")


@dataclass(frozen=True, slots=True)
class Match:
    """An enabled trigger as a dispatcher reads it: what it holds is text, and may be unreadable.

    The version is None if there is no such definition."""

    trigger_id: int
    tenant_id: str
    name: str
    event: str
    definition: str
    payload: str
    unknown_paths: str
    dedupe_window: str | None
    queue: str | None
    priority: int | None
    version: int | None
    arg_schema: str | None
    other_schemas: str | None = None


async def create(session: Session, tenant_id: TenantId, facts: Mapping[str, Any]) -> bool:
    """False if the name is taken."""
    params = {"tenant_id": tenant_id, "facts": orjson.dumps(facts).decode()}
    return await fetch_one(session, _STATEMENTS["create_trigger"].sql, params) is not None


async def update(
    session: Session, tenant_id: TenantId, name: str, *, changes: Mapping[str, Any]
) -> bool:
    """False if there is no such trigger."""
    params = {"tenant_id": tenant_id, "name": name, "changes": orjson.dumps(changes).decode()}
    return await fetch_one(session, _STATEMENTS["update_trigger"].sql, params) is not None


async def delete(session: Session, tenant_id: TenantId, name: str) -> bool:
    """False if there is no such trigger."""
    params = {"tenant_id": tenant_id, "name": name}
    return await fetch_one(session, _STATEMENTS["delete_trigger"].sql, params) is not None


async def get(session: Session, tenant_id: TenantId, name: str) -> TriggerState | None:
    params = {"tenant_id": tenant_id, "name": name}
    row = await fetch_one(session, _STATEMENTS["get_trigger"].sql, params)
    return None if row is None else _state(row[0])


async def list_triggers(
    session: Session,
    tenant_id: TenantId | None,
    *,
    after: str | None,
    after_tenant: str | None = None,
    enabled: bool | None,
    events: Sequence[str],
    definitions: Sequence[str],
    limit: int,
) -> list[TriggerState]:
    """Of all tenants if none is given, and then `after_tenant` says after whose trigger of the
    name."""
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "after_tenant": after_tenant,
        "enabled": enabled,
        "events": list(events) or None,
        "definitions": list(definitions) or None,
        "limit": limit,
    }
    rows = await fetch_all(session, _STATEMENTS["list_triggers"].sql, params)
    return [_state(text) for (text,) in rows]


async def names(session: Session, tenant_id: TenantId) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["trigger_names"].sql, {"tenant_id": tenant_id})
    return [name for (name,) in rows]


async def matching(session: Session, wanted: Iterable[tuple[str, str]]) -> list[Match]:
    """The enabled triggers for pairs of a tenant and a pattern, in the order they were made; of
    each pair one more than an event is given to."""
    pairs = list(wanted)
    params = {
        "tenants": [tenant_id for tenant_id, _ in pairs],
        "patterns": [pattern for _, pattern in pairs],
        "most": MOST_TRIGGERS + 1,
    }
    rows = await fetch_mappings(session, _STATEMENTS["matching_triggers"].sql, params)
    return [Match(**row) for row in rows]


def _state(text: str) -> TriggerState:
    facts = documents.read(text)
    window, outcome = facts["dedupe_window"], facts["last_outcome"]
    trigger = Trigger(
        name=facts["name"],
        event=facts["event"],
        definition=facts["definition"],
        payload=facts["payload"],
        unknown_paths=UnknownPaths(facts["unknown_paths"]),
        dedupe_window=None if window is None else timedelta(seconds=window),
        queue=facts["queue"],
        priority=facts["priority"],
    )
    return TriggerState(
        id=facts["trigger_id"],
        tenant_id=facts["tenant_id"],
        trigger=trigger,
        is_enabled=facts["is_enabled"],
        created_at=_instant(facts["created_at"]),
        updated_at=_instant(facts["updated_at"]),
        last_dispatched_at=_instant_or_none(facts["last_dispatched_at"]),
        last_outcome=None if outcome is None else DispatchOutcome(outcome),
        last_event_id=facts["last_event_id"],
        last_job_id=facts["last_job_id"],
        last_error=facts["last_error"],
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _instant_or_none(text: str | None) -> datetime | None:
    return None if text is None else _instant(text)
