"""Events in requests and responses."""

from datetime import datetime

from mainspring.api.models.base import (
    Answer,
    Body,
    IdOut,
    Name,
    Object,
    Text,
)
from mainspring.domain.events import Dispatch, DispatchOutcome, Event


class DispatchModel(Answer):
    """What one trigger did with an event; for a duplicate, the job is the existing one."""

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
    """Something that happened; it waits to be dispatched while `handled_at` is null."""

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
    """The trigger to dispatch an event to again; all that match if omitted."""

    trigger: Name | None = None
