"""Use cases of flows."""

from mainspring.db.sessions import Session
from mainspring.domain.errors import FlowNotFound
from mainspring.domain.filters import Several, texts
from mainspring.domain.flows import FlowJob, FlowSummary
from mainspring.domain.jobs.options import MAX_TEXT_LENGTH, ensure_text
from mainspring.domain.types import JobId, TenantId
from mainspring.store import flows as store


async def get(session: Session, tenant_id: TenantId, flow_id: int) -> FlowSummary:
    flow = await store.get(session, tenant_id, flow_id)
    if flow is None:
        raise FlowNotFound(flow_id)
    return flow


async def list_flows(
    session: Session,
    tenant_id: TenantId | None,
    *,
    name: Several[str] = None,
    before: int | None,
    limit: int,
) -> list[FlowSummary]:
    """Newest first; of all tenants if none is given."""
    names = texts("name", name)
    return await store.list_flows(session, tenant_id, names=names, before=before, limit=limit)


async def jobs_of(
    session: Session, tenant_id: TenantId, flow_id: int, *, after: JobId | None, limit: int
) -> list[FlowJob]:
    return await store.jobs_of(session, tenant_id, flow_id, after=after, limit=limit)


async def cancel(session: Session, tenant_id: TenantId, flow_id: int, *, reason: str) -> int:
    """How many jobs were live."""
    ensure_text("reason", reason, longest=MAX_TEXT_LENGTH)
    return await store.cancel(session, tenant_id, flow_id, reason=reason)


async def retry(session: Session, tenant_id: TenantId, flow_id: int) -> int:
    """How many jobs are back."""
    return await store.retry(session, tenant_id, flow_id)
