"""Triggers in requests and responses."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    DurationIn,
    DurationOut,
    IdOut,
    Name,
    Object,
    Text,
)
from mainspring.api.models.jobs import Priority
from mainspring.domain.events import DispatchOutcome
from mainspring.domain.triggers import TriggerState, UnknownPaths


class TriggerModel(Answer):
    """A rule that turns events into jobs, with its latest result."""

    name: str
    tenant: str
    event: str
    definition: str
    payload: Object
    unknown_paths: UnknownPaths
    dedupe_window: DurationOut | None
    queue: str | None
    priority: int | None
    is_enabled: bool
    created_at: datetime
    updated_at: datetime
    last_dispatched_at: datetime | None
    last_outcome: DispatchOutcome | None
    last_event_id: IdOut | None
    last_job_id: IdOut | None
    last_error: str | None

    @classmethod
    def of(cls, state: TriggerState) -> "TriggerModel":
        rule = state.trigger
        own = {name: getattr(rule, name) for name in cls.model_fields if hasattr(rule, name)}
        own |= {name: getattr(state, name) for name in cls.model_fields if hasattr(state, name)}
        own |= {"payload": dict(rule.payload), "tenant": state.tenant_id}
        return cls.model_construct(**own)


class TriggerFields(Body):
    """Fields of a trigger. `dedupe_window`, in seconds, is how long identical payloads are
    ignored."""

    event: Name | None = None
    definition: Name | None = None
    payload: Object | None = Field(
        None, description="Payload template; values may use {{event.size}} and the like."
    )
    unknown_paths: Literal["refuse", "null"] | None = None
    dedupe_window: DurationIn | None = None
    queue: Text | None = None
    priority: Priority | None = None


class NewTrigger(TriggerFields):
    """A trigger to create."""

    name: Name
    event: Name
    definition: Name
    is_enabled: bool = True


class Rehearsal(Body):
    """An event to test a trigger with; if it has no name, a matching one is chosen."""

    context: Object = {}
    event: Name | None = None


class RehearsedModel(Answer):
    """The payload that the job would get."""

    payload: Object
