"""Use cases of the audit: looking at it."""

from mainspring.db.sessions import Session
from mainspring.domain.audit import AuditEntry
from mainspring.domain.filters import Several, texts
from mainspring.store import audit as store


async def list_audit(
    session: Session,
    tenant_id: str | None,
    *,
    actor: Several[str] = None,
    action: Several[str] = None,
    noun: Several[str] = None,
    subject: Several[str] = None,
    before: int | None = None,
    limit: int = 50,
) -> list[AuditEntry]:
    """What was changed, the newest first."""
    return await store.list_audit(
        session,
        tenant_id,
        actors=texts("actor", actor),
        actions=texts("action", action),
        nouns=texts("noun", noun),
        subjects=texts("subject", subject),
        before=before,
        limit=limit,
    )
