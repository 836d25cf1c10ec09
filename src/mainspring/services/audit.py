"""Use cases of the audit: looking at it."""

from mainspring.db.database import Database
from mainspring.domain.audit import AuditEntry
from mainspring.store import audit as store


async def list_audit(
    database: Database,
    tenant_id: str | None,
    *,
    actor: str | None = None,
    noun: str | None = None,
    subject: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[AuditEntry]:
    """What was changed, the newest first."""
    call = store.list_audit(
        tenant_id, actor=actor, noun=noun, subject=subject, before=before, limit=limit
    )
    return [store.read_entry(row) for row in await database.arun(call)]
