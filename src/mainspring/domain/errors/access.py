"""Errors of access: who is asking, and what may they not."""

from mainspring.domain.errors import ConflictError, MainspringError, NotFoundError
from mainspring.domain.errors.database import DatabaseError


class Unauthenticated(MainspringError):
    """Nobody we know is asking."""

    code = "unauthenticated"


class Forbidden(MainspringError):
    """The caller is known, and may not do this."""

    code = "forbidden"


class DuplicateToken(ConflictError):
    """A token that was not revoked has the name."""

    code = "duplicate_token"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a token {name!r} already; revoke it, or choose another name")
        self.name = name


class DuplicatePerson(ConflictError):
    """There is a person of this name already."""

    code = "duplicate_person"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a person {name!r} already; change its role instead")
        self.name = name


class ReplayConflict(ConflictError):
    """The key of a create was used before for another request."""

    code = "replay_conflict"

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} was used before for another request")
        self.key = key


class WorkerGone(ConflictError):
    """A worker over the API that has lost its lease, or is someone else's."""

    code = "worker_gone"

    def __init__(self, worker_id: int) -> None:
        super().__init__(f"worker {worker_id} has lost its lease, or is not yours; register again")
        self.worker_id = worker_id


class TokenNotFound(NotFoundError):
    """No token has this name."""

    code = "token_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"there is no token {name!r}{hint}")
        self.name, self.suggestion = name, suggestion


class PersonNotFound(NotFoundError):
    """No person has this name."""

    code = "person_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"there is no person {name!r}{hint}")
        self.name, self.suggestion = name, suggestion


class AppRoleMissing(DatabaseError):
    """The role that requests run as is not there, and we may not make it."""

    code = "app_role_missing"
