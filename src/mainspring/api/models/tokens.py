"""Tokens in requests and responses."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from mainspring.api.models.base import Answer, Body, DurationIn, IdOut, Name, Text
from mainspring.domain.access.roles import EVERY_TENANT, MOST_TENANTS, Role
from mainspring.domain.access.tokens import Token, TokenState

TokenRole = Literal["operator", "admin", "member", "viewer", "worker"]


class TokenModel(Answer):
    """An API token; only the beginning of its text is shown. `person` created it, directly or with
    another token. The audit log knows it as `token:` and the id. `tenants` are those that a worker
    serves if it has no `tenant`; `*` is all of them."""

    id: IdOut
    name: str
    prefix: str
    role: Role
    tenant: str | None
    tenants: list[str] | None
    scopes: list[str] | None
    person: str | None
    state: TokenState
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: Token) -> "TokenModel":
        own = {name: getattr(token, name) for name in cls.model_fields if hasattr(token, name)}
        own |= {"tenant": token.tenant_id, "scopes": token.scopes and list(token.scopes)}
        own |= {"id": token.token_id, "tenants": _served(token)}
        return cls.model_construct(**own)


def _served(token: Token) -> list[str] | None:
    if token.role is not Role.WORKER or token.tenant_id is not None:
        return None
    return [EVERY_TENANT] if token.tenants is None else list(token.tenants)


class NewToken(Body):
    """A token to create. `expires_in` is in seconds; without it the token is valid until it is
    revoked. A caller with scopes or an expiry has to pass its own or less. With `tenants`, which
    only operators can pass, it is for a worker that serves these tenants; `*` is all of them."""

    name: Name
    role: TokenRole
    tenants: Annotated[list[Name], Field(min_length=1, max_length=MOST_TENANTS)] | None = None
    scopes: Annotated[list[Text], Field(min_length=1, max_length=50)] | None = None
    expires_in: DurationIn | None = None


class CreatedTokenModel(Answer):
    """A new token with its text, which is shown only once."""

    token: str
    details: TokenModel
