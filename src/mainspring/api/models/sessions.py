"""Sessions in responses."""

from datetime import datetime

from mainspring.api.models.base import Answer, IdOut
from mainspring.domain.access.tokens import LoginSession


class SessionModel(Answer):
    """Someone who is logged in; `created_by` made the login link."""

    id: IdOut
    person: str
    tenant: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    is_current: bool

    @classmethod
    def of(cls, session: LoginSession, *, current: int) -> "SessionModel":
        own = {name: getattr(session, name) for name in cls.model_fields if hasattr(session, name)}
        return cls.model_construct(
            **own,
            id=session.session_id,
            tenant=session.tenant_id,
            is_current=session.session_id == current,
        )


class EndedSessions(Answer):
    """How many sessions were ended."""

    ended: int
