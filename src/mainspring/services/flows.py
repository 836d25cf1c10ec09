"""Use cases of flows."""

from mainspring.db.database import Database
from mainspring.domain.errors import FlowNotFound
from mainspring.domain.flows import FlowJob, FlowSummary
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.types import JobId, TenantId
from mainspring.store import flows as store


async def get(database: Database, tenant_id: TenantId, flow_id: int) -> FlowSummary:
    rows = await database.arun(store.get(tenant_id, flow_id))
    if not rows:
        raise FlowNotFound(flow_id)
    return store.read_summary(rows[0])


async def list_flows(
    database: Database, tenant_id: TenantId | None, *, before: int | None, limit: int
) -> list[FlowSummary]:
    """Newest first; of all tenants if none is given."""
    rows = await database.arun(store.list_flows(tenant_id, before=before, limit=limit))
    return [store.read_summary(row) for row in rows]


async def jobs_of(
    database: Database, tenant_id: TenantId, flow_id: int, *, after: JobId | None, limit: int
) -> list[FlowJob]:
    rows = await database.arun(store.jobs_of(tenant_id, flow_id, after=after, limit=limit))
    return [store.read_job(row) for row in rows]


async def cancel(database: Database, tenant_id: TenantId, flow_id: int, *, reason: str) -> int:
    """How many jobs were live."""
    ensure_text("reason", reason)
    ((count,),) = await database.arun(store.cancel(tenant_id, flow_id, reason))
    return int(count)


async def retry(database: Database, tenant_id: TenantId, flow_id: int) -> int:
    """How many jobs are back."""
    ((count,),) = await database.arun(store.retry(tenant_id, flow_id))
    return int(count)
