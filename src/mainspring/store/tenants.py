"""Statements on tenants."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.tenants import TenantState

_STATEMENTS = load("tenants")


async def create(session: Session, tenant_id: str, *, weight: int, max_running: int | None) -> bool:
    """False if the name is taken."""
    params = {"tenant_id": tenant_id, "weight": weight, "max_running": max_running}
    return await fetch_one(session, _STATEMENTS["create_tenant"].sql, params) is not None


async def update(session: Session, tenant_id: str, changes: Mapping[str, Any]) -> bool:
    """False if there is no such tenant."""
    params = {"tenant_id": tenant_id, "changes": orjson.dumps(changes).decode()}
    return await fetch_one(session, _STATEMENTS["update_tenant"].sql, params) is not None


async def get(session: Session, tenant_id: str) -> TenantState | None:
    row = await fetch_one(session, _STATEMENTS["get_tenant"].sql, {"tenant_id": tenant_id})
    return None if row is None else _state(row[0])


async def is_known(session: Session, tenant_id: str) -> bool:
    params = {"tenant_id": tenant_id}
    return await fetch_one(session, _STATEMENTS["find_tenant"].sql, params) is not None


async def zone(session: Session, tenant_id: str) -> str:
    """The zone of schedules that name none; UTC if there is no such tenant."""
    row = await fetch_one(session, _STATEMENTS["tenant_zone"].sql, {"tenant_id": tenant_id})
    return "UTC" if row is None else str(row[0])


async def list_tenants(session: Session, *, after: str | None, limit: int) -> list[TenantState]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_tenants"].sql, params)
    return [_state(text) for (text,) in rows]


async def names(session: Session) -> list[str]:
    return [name for (name,) in await fetch_all(session, _STATEMENTS["tenant_names"].sql, {})]


def _state(text: str) -> TenantState:
    facts = orjson.loads(text)
    created_at = datetime.fromisoformat(facts.pop("created_at")).astimezone(UTC)
    return TenantState(**facts, created_at=created_at)
