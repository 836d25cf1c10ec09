"""Use cases of tenants: check what was asked, say it to the store, tell what came of it."""

import difflib
from collections.abc import Mapping
from typing import Any

from mainspring.db.database import Database
from mainspring.domain.errors import DuplicateTenant, InvalidOption, TenantNotFound
from mainspring.domain.tenants import (
    TenantState,
    ensure_max_running,
    ensure_name,
    ensure_weight,
)
from mainspring.store import tenants as store

_CHECKS = {"weight": ensure_weight, "max_running": ensure_max_running}


async def create(
    database: Database, tenant_id: str, *, weight: int = 1, max_running: int | None = None
) -> TenantState:
    ensure_name(tenant_id)
    ensure_weight(weight)
    ensure_max_running(max_running)
    if not await database.arun(store.create(tenant_id, weight=weight, max_running=max_running)):
        raise DuplicateTenant(tenant_id)
    return await get(database, tenant_id)


async def update(database: Database, tenant_id: str, changes: Mapping[str, Any]) -> TenantState:
    """Change the given fields; workers go by them within about a second."""
    for name, value in changes.items():
        if name not in _CHECKS:
            close = difflib.get_close_matches(name, _CHECKS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidOption(name, f"is not a field of a tenant{hint}")
        _CHECKS[name](value)
    if not await database.arun(store.update(tenant_id, changes)):
        raise await _not_found(database, tenant_id)
    return await get(database, tenant_id)


async def get(database: Database, tenant_id: str) -> TenantState:
    rows = await database.arun(store.get(tenant_id))
    if not rows:
        raise await _not_found(database, tenant_id)
    return store.read_state(rows[0][0])


async def ensure_known(database: Database, tenant_id: str) -> None:
    if not await database.arun(store.find(tenant_id)):
        raise await _not_found(database, tenant_id)


async def list_tenants(
    database: Database, *, after: str | None = None, limit: int = 100
) -> list[TenantState]:
    call = store.list_tenants(after=after, limit=limit)
    return [store.read_state(text) for (text,) in await database.arun(call)]


async def _not_found(database: Database, tenant_id: str) -> TenantNotFound:
    names = [name for (name,) in await database.arun(store.names())]
    close = difflib.get_close_matches(str(tenant_id), names, n=1)
    return TenantNotFound(str(tenant_id), close[0] if close else None)
