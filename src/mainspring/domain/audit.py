"""The audit: who changed what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change; `before` and `after` hold what differs. No tenant is an operator's matter."""

    id: int
    at: datetime
    tenant_id: str | None
    actor: str
    action: str
    noun: str
    subject: str
    reason: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
