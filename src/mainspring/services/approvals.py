"""Use cases of approvals."""

from mainspring.db.database import Database
from mainspring.domain.approvals import Approval
from mainspring.domain.errors import ApprovalNotFound
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.types import JobId, JobState, TenantId
from mainspring.store import approvals as store


async def approve(
    database: Database, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> JobState:
    """What the job has become: awaiting_approval while more have to approve."""
    _ensure_actor(actor)
    call = store.approve(tenant_id, job_id, reason=reason, actor=actor)
    ((state,),) = await database.arun(call)
    return JobState(state)


async def reject(
    database: Database, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> None:
    _ensure_actor(actor)
    ensure_text("reason", reason)
    await database.arun(store.reject(tenant_id, job_id, reason=reason, actor=actor))


async def list_open(
    database: Database, tenant_id: TenantId | None, *, after: JobId | None, limit: int
) -> list[Approval]:
    """The longest waiting first; of all tenants if none is given."""
    call = store.open_approvals(tenant_id, after=after, limit=limit)
    return [store.read(row) for row in await database.arun(call)]


async def get(database: Database, tenant_id: TenantId, job_id: JobId) -> Approval:
    rows = await database.arun(store.get(tenant_id, job_id))
    if not rows:
        raise ApprovalNotFound(job_id)
    return store.read(rows[0])


def _ensure_actor(actor: str | None) -> None:
    if actor is not None:
        ensure_text("by", actor)
