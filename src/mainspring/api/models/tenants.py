"""Tenants in requests and responses."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import Answer, Body, IdOut, Name
from mainspring.domain.tenants import TenantState


class TenantModel(Answer):
    """A tenant with its limits and number of live jobs."""

    name: str
    weight: int
    max_running: int | None
    ready: int
    waiting: int
    running: int
    held: int
    created_at: datetime
    zone: str
    is_enabled: bool

    @classmethod
    def of(cls, state: TenantState) -> "TenantModel":
        own = {name: getattr(state, name) for name in cls.model_fields if hasattr(state, name)}
        return cls.model_construct(**own, name=state.tenant_id)


class TenantFields(Body):
    """Limits of a tenant: its `weight` where it shares a queue, and at most `max_running` jobs at
    once. `zone` is that of its schedules which name none."""

    weight: Annotated[int, Field(ge=1, le=1000)] | None = None
    max_running: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    zone: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class TenantChanges(TenantFields):
    """Changes of a tenant. One that is not enabled takes no jobs, starts none, and its tokens are
    refused."""

    is_enabled: bool | None = None


class TenantContentsModel(Answer):
    """How many of each thing a tenant has."""

    live_jobs: int
    finished_jobs: int
    flows: int
    schedules: int
    triggers: int
    events: int
    people: int
    tokens: int


class TenantDeletionModel(Answer):
    """What a deletion deletes, and the job that does it, unless it is a dry run."""

    job_id: IdOut | None
    contents: TenantContentsModel


class NewTenant(TenantFields):
    """A tenant to create."""

    name: Name
