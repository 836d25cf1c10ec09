"""Statements on the audit."""

from collections.abc import Sequence
from typing import Any

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.audit import AuditEntry

_STATEMENTS = load("audit")


async def list_audit(
    session: Session,
    tenant_id: str | None,
    *,
    actors: Sequence[str],
    actions: Sequence[str],
    nouns: Sequence[str],
    subjects: Sequence[str],
    before: int | None,
    limit: int,
) -> list[AuditEntry]:
    """The newest first."""
    params = {
        "tenant_id": tenant_id,
        "actors": list(actors) or None,
        "actions": list(actions) or None,
        "nouns": list(nouns) or None,
        "subjects": list(subjects) or None,
        "before": before,
        "limit": limit,
    }
    rows = await fetch_all(session, _STATEMENTS["list_audit"].sql, params)
    return [_entry(row) for row in rows]


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    audit_id, at, tenant_id, *rest = row
    return AuditEntry(audit_id, at, tenant_id or None, *rest)
