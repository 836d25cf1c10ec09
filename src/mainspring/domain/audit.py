"""The audit: who changed what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change; `before` and `after` hold what differs. No tenant is an operator's matter.
    `actor` is what the one who acted is called, `actor_id` kind and id."""

    id: int
    at: datetime
    tenant_id: str | None
    actor: str
    actor_id: str | None
    action: str
    noun: str
    subject: str
    reason: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
