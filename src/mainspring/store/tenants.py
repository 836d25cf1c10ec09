"""Statements on tenants."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.tenants import TenantState

_STATEMENTS = load("tenants")


def create(tenant_id: str, *, weight: int, max_running: int | None) -> Call:
    """One row, or none if the name is taken."""
    params = {"tenant_id": tenant_id, "weight": weight, "max_running": max_running}
    return Call(_STATEMENTS["create_tenant"].sql, params)


def update(tenant_id: str, changes: Mapping[str, Any]) -> Call:
    """One row, or none if there is no such tenant."""
    params = {"tenant_id": tenant_id, "changes": orjson.dumps(changes).decode()}
    return Call(_STATEMENTS["update_tenant"].sql, params)


def get(tenant_id: str) -> Call:
    """The row is (the tenant as text,), for `read_state`; no row if there is none."""
    return Call(_STATEMENTS["get_tenant"].sql, {"tenant_id": tenant_id})


def find(tenant_id: str) -> Call:
    """One row, or none if there is no such tenant."""
    return Call(_STATEMENTS["find_tenant"].sql, {"tenant_id": tenant_id})


def list_tenants(*, after: str | None, limit: int) -> Call:
    """Each row is (the tenant as text,), for `read_state`."""
    return Call(_STATEMENTS["list_tenants"].sql, {"after": after, "limit": limit})


def names() -> Call:
    """Each row is (name,)."""
    return Call(_STATEMENTS["tenant_names"].sql, {})


def read_state(text: str) -> TenantState:
    facts = orjson.loads(text)
    created_at = datetime.fromisoformat(facts.pop("created_at")).astimezone(UTC)
    return TenantState(**facts, created_at=created_at)
