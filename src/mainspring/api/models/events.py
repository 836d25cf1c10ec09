"""Events and triggers in requests and answers."""

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
from mainspring.domain.events import Dispatch, DispatchOutcome, Event
from mainspring.domain.triggers import TriggerState, UnknownPaths


class DispatchModel(Answer):
    """What one trigger made of an event; of a duplicate, the job is the earlier one."""

    trigger: str
    replay: int
    outcome: DispatchOutcome
    job_id: IdOut | None
    error: str | None
    dispatched_at: datetime

    @classmethod
    def of(cls, dispatch: Dispatch) -> "DispatchModel":
        return cls.model_construct(**{name: getattr(dispatch, name) for name in cls.model_fields})


class EventModel(Answer):
    """Something that happened; it waits for a dispatcher while `handled_at` is null."""

    id: IdOut
    tenant: str
    name: str
    context: Object
    correlation_id: str | None
    emitted_at: datetime
    handled_at: datetime | None
    replays: int
    jobs: int
    duplicates: int
    failures: int
    last_error: str | None
    dispatches: list[DispatchModel]

    @classmethod
    def of(cls, event: Event) -> "EventModel":
        own = {name: getattr(event, name) for name in cls.model_fields if hasattr(event, name)}
        own |= {"context": dict(event.context), "tenant": event.tenant_id}
        own["dispatches"] = [DispatchModel.of(each) for each in event.dispatches]
        return cls.model_construct(**own)


class NewEvent(Body):
    """Something that happened."""

    name: Name
    context: Object = {}
    correlation_id: Text | None = None


class EmittedModel(Answer):
    """The event that was emitted."""

    id: IdOut


class Replay(Body):
    """To which trigger an event is given once more; to all that match if left out."""

    trigger: Name | None = None


class TriggerModel(Answer):
    """The rule that turns events into jobs, and what came of it last."""

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
    """What can be said of a trigger. `dedupe_window` is seconds."""

    event: Name | None = None
    definition: Name | None = None
    payload: Object | None = Field(None, description="A template, such as {{event.size}}.")
    unknown_paths: Literal["refuse", "null"] | None = None
    dedupe_window: DurationIn | None = None
    queue: Text | None = None
    priority: Priority | None = None


class NewTrigger(TriggerFields):
    """A trigger to add."""

    name: Name
    event: Name
    definition: Name
    enabled: bool = True


class Rehearsal(Body):
    """An event to try a trigger with; without a name one that matches is made up."""

    context: Object = {}
    event: Name | None = None


class RehearsedModel(Answer):
    """The payload that the job would get."""

    payload: Object
