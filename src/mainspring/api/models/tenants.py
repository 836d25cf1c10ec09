"""Tenants, people, tokens, workers, queues and the audit in requests and answers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from mainspring.api.models.base import Answer, Body, DurationIn, IdOut, Name, Object, Text
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person, Token, TokenState
from mainspring.domain.audit import AuditEntry
from mainspring.domain.tenants import TenantState


class TenantModel(Answer):
    """Who work belongs to, what it may take, and how many live jobs it has."""

    name: str
    weight: int
    max_running: int | None
    ready: int
    waiting: int
    running: int
    held: int
    created_at: datetime

    @classmethod
    def of(cls, state: TenantState) -> "TenantModel":
        own = {name: getattr(state, name) for name in cls.model_fields if hasattr(state, name)}
        return cls.model_construct(**own, name=state.tenant_id)


class TenantFields(Body):
    """What a tenant may take: `weight` turns where it shares a queue, `max_running` at once."""

    weight: Annotated[int, Field(ge=1, le=1000)] | None = None
    max_running: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class NewTenant(TenantFields):
    """A tenant to add."""

    name: Name


class PersonModel(Answer):
    """Someone who logs in."""

    name: str
    role: Role
    tenant: str | None
    is_disabled: bool
    created_at: datetime
    created_by: str
    last_seen_at: datetime | None

    @classmethod
    def of(cls, person: Person) -> "PersonModel":
        own = {name: getattr(person, name) for name in cls.model_fields if hasattr(person, name)}
        return cls.model_construct(**own, tenant=person.tenant_id)


PersonRole = Literal["operator", "admin", "member", "viewer"]
TokenRole = Literal["operator", "admin", "member", "viewer", "worker"]


class NewPerson(Body):
    """Someone who may log in."""

    name: Name
    role: PersonRole


class PersonChanges(Body):
    """Another role, or whether the person may come in at all."""

    role: PersonRole | None = None
    is_disabled: bool | None = None


class LoginModel(Answer):
    """Where a person logs in, once and within a quarter of an hour."""

    url: str


class TokenModel(Answer):
    """What a program shows to be let in; only how its text begins is known."""

    name: str
    prefix: str
    role: Role
    tenant: str | None
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
        return cls.model_construct(**own)


class NewToken(Body):
    """A token to make. `expires_in` is seconds; without it the token lasts until it is revoked."""

    name: Name
    role: TokenRole
    scopes: Annotated[list[Text], Field(min_length=1, max_length=50)] | None = None
    expires_in: DurationIn | None = None


class CreatedTokenModel(Answer):
    """A new token with its text, which is shown this once."""

    token: str
    details: TokenModel


class WorkerModel(Answer):
    """A worker process, whether it is alive, and how many of the jobs that you may see it runs."""

    id: IdOut
    name: str
    host: str
    pid: int
    queues: list[str]
    concurrency: int
    version: str
    started_at: datetime
    renewed_at: datetime
    expires_at: datetime
    is_stopping: bool
    is_alive: bool
    running: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "WorkerModel":
        own = {name: row[name] for name in cls.model_fields if name in row}
        return cls.model_construct(**own, id=row["worker_id"])


class Workers(Answer):
    """All workers, the newest first."""

    items: list[WorkerModel]


class QueueModel(Answer):
    """The live jobs of a queue: ready to start, waiting, running, and held for something else."""

    name: str
    tenant: str
    ready: int
    waiting: int
    running: int
    held: int
    oldest_ready_at: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "QueueModel":
        own = {name: row[name] for name in cls.model_fields if name in row}
        return cls.model_construct(**own, name=row["queue"], tenant=row["tenant_id"])


class Queues(Answer):
    """The queues that hold live jobs."""

    items: list[QueueModel]


class AuditModel(Answer):
    """One change; `before` and `after` hold what differs."""

    id: IdOut
    at: datetime
    tenant: str | None
    actor: str
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


class CallerModel(Answer):
    """Who you are."""

    actor: str
    role: Role
    tenant: str | None
    scopes: list[str] | None
