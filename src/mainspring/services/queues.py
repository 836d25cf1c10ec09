"""Use cases of queues: list, pause and resume them."""

from datetime import datetime, timedelta

from mainspring.db.sessions import Session
from mainspring.domain.errors.queues import QueueNotPaused
from mainspring.domain.queues import QueuePause, QueueState, ensure_pause
from mainspring.domain.suggestions import closest
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.store import queues as store


async def list_queues(
    session: Session,
    tenant_id: TenantId | None = DEFAULT_TENANT,
    *,
    after: str | None = None,
    after_tenant: str | None = None,
    limit: int = 1000,
) -> list[QueueState]:
    """Ready, waiting, running and held jobs by queue, of all tenants if none is given; page on with
    the last queue and its tenant."""
    return await store.list_queues(
        session, tenant_id, after=after, after_tenant=after_tenant, limit=limit
    )


async def pause(
    session: Session,
    name: str,
    *,
    reason: str = "",
    until: datetime | None = None,
    duration: timedelta | None = None,
    actor: str | None,
) -> QueuePause:
    """Nothing of the queue is claimed from now on; what is claimed already runs."""
    ensure_pause(name, reason, until=until, duration=duration)
    return await store.pause(session, name, reason, until=until, duration=duration, actor=actor)


async def resume(session: Session, name: str, *, actor: str | None) -> None:
    """End a pause; raises QueueNotPaused."""
    if not await store.resume(session, name, actor):
        known = [paused.name for paused in await store.paused(session)]
        raise QueueNotPaused(name, closest(name, known))
