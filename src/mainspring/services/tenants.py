"""Use cases of tenants: check what was asked, say it to the store, tell what came of it."""

from collections.abc import Mapping
from typing import Any

from mainspring.db.sessions import Session
from mainspring.domain.errors import DuplicateTenant, InvalidOption, TenantNotFound
from mainspring.domain.suggestions import closest, did_you_mean
from mainspring.domain.tenants import (
    TenantState,
    ensure_max_running,
    ensure_name,
    ensure_weight,
)
from mainspring.store import tenants as store

_CHECKS = {"weight": ensure_weight, "max_running": ensure_max_running}


async def create(
    session: Session, tenant_id: str, *, weight: int = 1, max_running: int | None = None
) -> TenantState:
    ensure_name(tenant_id)
    ensure_weight(weight)
    ensure_max_running(max_running)
    if not await store.create(session, tenant_id, weight=weight, max_running=max_running):
        raise DuplicateTenant(tenant_id)
    return await get(session, tenant_id)


async def update(session: Session, tenant_id: str, changes: Mapping[str, Any]) -> TenantState:
    """Change the given fields; workers go by them within about a second."""
    for name, value in changes.items():
        if name not in _CHECKS:
            hint = did_you_mean(name, _CHECKS)
            raise InvalidOption(name, f"is not a field of a tenant{hint}")
        _CHECKS[name](value)
    if not await store.update(session, tenant_id, changes):
        raise await _not_found(session, tenant_id)
    return await get(session, tenant_id)


async def get(session: Session, tenant_id: str) -> TenantState:
    state = await store.get(session, tenant_id)
    if state is None:
        raise await _not_found(session, tenant_id)
    return state


async def ensure_known(session: Session, tenant_id: str) -> None:
    if not await store.is_known(session, tenant_id):
        raise await _not_found(session, tenant_id)


async def list_tenants(
    session: Session, *, after: str | None = None, limit: int = 100
) -> list[TenantState]:
    return await store.list_tenants(session, after=after, limit=limit)


async def _not_found(session: Session, tenant_id: str) -> TenantNotFound:
    known = await store.names(session)
    return TenantNotFound(str(tenant_id), closest(str(tenant_id), known))
