"""Statements on the audit."""

from typing import Any

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.audit import AuditEntry

_STATEMENTS = load("audit")


async def list_audit(
    session: Session,
    tenant_id: str | None,
    *,
    actor: str | None,
    noun: str | None,
    subject: str | None,
    before: int | None,
    limit: int,
) -> list[AuditEntry]:
    """The newest first."""
    params = {
        "tenant_id": tenant_id,
        "actor": actor,
        "noun": noun,
        "subject": subject,
        "before": before,
        "limit": limit,
    }
    rows = await fetch_all(session, _STATEMENTS["list_audit"].sql, params)
    return [_entry(row) for row in rows]


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    audit_id, at, tenant_id, *rest = row
    return AuditEntry(audit_id, at, tenant_id or None, *rest)
