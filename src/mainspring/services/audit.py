"""Use cases of the audit: looking at it."""

from mainspring.db.sessions import Session
from mainspring.domain.audit import AuditEntry
from mainspring.store import audit as store


async def list_audit(
    session: Session,
    tenant_id: str | None,
    *,
    actor: str | None = None,
    noun: str | None = None,
    subject: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[AuditEntry]:
    """What was changed, the newest first."""
    return await store.list_audit(
        session, tenant_id, actor=actor, noun=noun, subject=subject, before=before, limit=limit
    )
