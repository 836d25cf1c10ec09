"""Statements on the audit."""

from typing import Any

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.audit import AuditEntry

_STATEMENTS = load("audit")


def list_audit(
    tenant_id: str | None,
    *,
    actor: str | None,
    noun: str | None,
    subject: str | None,
    before: int | None,
    limit: int,
) -> Call:
    """Each row is for `read_entry`."""
    params = {
        "tenant_id": tenant_id,
        "actor": actor,
        "noun": noun,
        "subject": subject,
        "before": before,
        "limit": limit,
    }
    return Call(_STATEMENTS["list_audit"].sql, params)


def read_entry(row: tuple[Any, ...]) -> AuditEntry:
    audit_id, at, tenant_id, *rest = row
    return AuditEntry(audit_id, at, tenant_id or None, *rest)
