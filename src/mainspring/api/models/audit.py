"""Audit entries in responses."""

from datetime import datetime

from mainspring.api.models.base import Answer, IdOut, Object
from mainspring.domain.audit import AuditEntry


class AuditModel(Answer):
    """One change; `before` and `after` contain the fields that differ. `actor_id` is who acted, as
    a kind and an id, such as person:7 or token:12; `actor` is what they are called."""

    id: IdOut
    at: datetime
    tenant: str | None
    actor: str
    actor_id: str | None
    action: str
    noun: str
    subject: str
    reason: str | None
    before: Object | None
    after: Object | None

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditModel":
        own = {name: getattr(entry, name) for name in cls.model_fields if hasattr(entry, name)}
        return cls.model_construct(**own, tenant=entry.tenant_id)
