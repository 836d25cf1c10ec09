"""Use cases of approvals."""

from mainspring.db.plans import arun
from mainspring.db.sessions import ServiceSession, Session
from mainspring.domain.approvals import Approval
from mainspring.domain.errors import ApprovalNotFound
from mainspring.domain.filters import Several, texts
from mainspring.domain.jobs.options import ensure_reason, ensure_text
from mainspring.domain.types import JobId, JobState, TenantId
from mainspring.services.redaction import shown_reason
from mainspring.store import approvals as store


async def approve(
    session: ServiceSession, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> JobState:
    """What the job has become: awaiting_approval while more have to approve."""
    _ensure_actor(actor)
    ensure_reason(reason)
    shown = await _shown(session, tenant_id, job_id, reason=reason)
    return await store.approve(session, tenant_id, job_id, reason=shown, actor=actor)


async def reject(
    session: ServiceSession, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> None:
    _ensure_actor(actor)
    ensure_text("reason", reason)
    shown = await _shown(session, tenant_id, job_id, reason=reason)
    await store.reject(session, tenant_id, job_id, reason=shown, actor=actor)


async def _shown(
    session: ServiceSession, tenant_id: TenantId, job_id: JobId, *, reason: str
) -> str:
    plan = shown_reason(reason, job_id, tenant_id=tenant_id, settings=session.settings)
    return await arun(plan, session)


async def list_open(
    session: Session,
    tenant_id: TenantId | None,
    *,
    definition: Several[str] = None,
    after: JobId | None,
    limit: int,
) -> list[Approval]:
    """The longest waiting first; of all tenants if none is given."""
    definitions = texts("definition", definition)
    return await store.open_approvals(
        session, tenant_id, definitions=definitions, after=after, limit=limit
    )


async def get(session: Session, tenant_id: TenantId, job_id: JobId) -> Approval:
    approval = await store.get(session, tenant_id, job_id)
    if approval is None:
        raise ApprovalNotFound(job_id)
    return approval


def _ensure_actor(actor: str | None) -> None:
    if actor is not None:
        ensure_text("by", actor)
