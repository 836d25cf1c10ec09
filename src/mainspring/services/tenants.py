"""Use cases of tenants: check what was asked, say it to the store, tell what came of it."""

from collections.abc import Mapping
from typing import Any

from mainspring.db.sessions import Session
from mainspring.domain.errors import DuplicateTenant, InvalidOption, TenantNotFound
from mainspring.domain.suggestions import closest, did_you_mean
from mainspring.domain.tenants import (
    TenantContents,
    TenantState,
    ensure_enabled,
    ensure_max_running,
    ensure_name,
    ensure_weight,
    ensure_zone,
)
from mainspring.domain.types import DEFAULT_TENANT, JobId
from mainspring.store import tenants as store

_CHECKS = {
    "weight": ensure_weight,
    "max_running": ensure_max_running,
    "zone": ensure_zone,
    "is_enabled": ensure_enabled,
}


async def create(
    session: Session,
    tenant_id: str,
    *,
    weight: int = 1,
    max_running: int | None = None,
    zone: str = "UTC",
) -> TenantState:
    ensure_name(tenant_id)
    ensure_weight(weight)
    ensure_max_running(max_running)
    ensure_zone(zone)
    if not await store.create(
        session, tenant_id, weight=weight, max_running=max_running, zone=zone
    ):
        raise DuplicateTenant(tenant_id)
    return await get(session, tenant_id)


async def update(session: Session, tenant_id: str, changes: Mapping[str, Any]) -> TenantState:
    """Change the given fields; workers go by them within about a second."""
    for name, value in changes.items():
        if name not in _CHECKS:
            hint = did_you_mean(name, _CHECKS)
            raise InvalidOption(name, f"is not a field of a tenant{hint}")
        _CHECKS[name](value)
    if tenant_id == DEFAULT_TENANT and changes.get("is_enabled") is False:
        raise InvalidOption("tenant", f"{DEFAULT_TENANT} cannot be disabled")
    if not await store.update(session, tenant_id, changes):
        raise await _not_found(session, tenant_id)
    return await get(session, tenant_id)


async def get(session: Session, tenant_id: str) -> TenantState:
    state = await store.get(session, tenant_id)
    if state is None:
        raise await _not_found(session, tenant_id)
    return state


async def contents(session: Session, tenant_id: str) -> TenantContents:
    """What a deletion would delete."""
    _ensure_deletable(tenant_id)
    await ensure_known(session, tenant_id)
    return await store.contents(session, tenant_id)


async def delete(session: Session, tenant_id: str) -> JobId:
    """Disable the tenant at once and delete it with all it has in the background; the job that
    does it."""
    _ensure_deletable(tenant_id)
    await ensure_known(session, tenant_id)
    return await store.start_deletion(session, tenant_id)


def _ensure_deletable(tenant_id: str) -> None:
    if tenant_id == DEFAULT_TENANT:
        raise InvalidOption("tenant", f"{DEFAULT_TENANT} cannot be deleted")


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
