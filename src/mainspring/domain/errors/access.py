"""Access errors: who the caller is and what it may do."""

from collections.abc import Sequence

from mainspring.domain.errors import ConflictError, MainspringError, NotFoundError
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.errors.hints import hint


class Unauthenticated(MainspringError):
    """The caller is not authenticated."""

    code = "unauthenticated"


class Forbidden(MainspringError):
    """The caller is not allowed to do this."""

    code = "forbidden"


class DuplicateToken(ConflictError):
    """A token with this name exists and was not revoked."""

    code = "duplicate_token"

    def __init__(self, name: str) -> None:
        super().__init__(f"token {name!r} already exists; revoke it or choose another name")
        self.name = name


class DuplicatePerson(ConflictError):
    """A person with this name already exists."""

    code = "duplicate_person"

    def __init__(self, name: str) -> None:
        super().__init__(f"person {name!r} already exists; change their role instead")
        self.name = name


class ReplayConflict(ConflictError):
    """The key of a create was already used for a different request."""

    code = "replay_conflict"

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} was already used for a different request")
        self.key = key


class TokenNotFound(NotFoundError):
    """No token has this name."""

    code = "token_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no token {name!r}{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion


class PersonNotFound(NotFoundError):
    """No person has this name."""

    code = "person_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no person {name!r}{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion


class SessionNotFound(NotFoundError):
    """There is no such session, or it has ended, or it is someone else's."""

    code = "session_not_found"

    def __init__(self, session_id: int | None = None) -> None:
        shown = "the caller has no session" if session_id is None else f"no session {session_id}"
        super().__init__(shown if session_id is None else f"there is {shown}")
        self.session_id = session_id


class AmbiguousName(ConflictError):
    """Several tenants have someone or something of this name, and none was named."""

    code = "ambiguous_name"

    def __init__(self, name: str, tenants: Sequence[str]) -> None:
        listed = ", ".join(tenants[:-1]) + f" and {tenants[-1]}"
        super().__init__(f"{name!r} is a name in the tenants {listed}; say which tenant you mean")
        self.name, self.tenants = name, tuple(tenants)


class AppRoleMissing(DatabaseError):
    """The role that requests run as is missing, and the server may not create it."""

    code = "app_role_missing"
