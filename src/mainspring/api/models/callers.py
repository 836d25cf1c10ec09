"""The caller of a request, as it is shown to itself."""

from mainspring.api.models.base import Answer
from mainspring.domain.access.roles import Role


class CallerModel(Answer):
    """The caller of the request."""

    actor: str
    role: Role
    tenant: str | None
    scopes: list[str] | None
