"""Access errors: who the caller is and what it may do."""

from mainspring.domain.errors import ConflictError, MainspringError, NotFoundError
from mainspring.domain.errors.database import DatabaseError


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


class WorkerGone(ConflictError):
    """The API worker has lost its lease, or belongs to someone else."""

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
    """The role that requests run as is missing, and the server may not create it."""

    code = "app_role_missing"
