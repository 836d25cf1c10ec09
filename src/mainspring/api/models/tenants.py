"""Tenants in requests and responses."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import Answer, Body, Name
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
