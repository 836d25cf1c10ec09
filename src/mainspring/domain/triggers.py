"""A trigger: the rule that turns events into jobs, and what its template is filled in from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from mainspring.domain import templates
from mainspring.domain.errors import InvalidTrigger
from mainspring.domain.events import DispatchOutcome, ensure_pattern
from mainspring.domain.jobs.options import ensure_priority, ensure_queue
from mainspring.domain.template_sources import Budget, JsonSource, instant_text
from mainspring.domain.types import LONGEST_DELAY, EventId, JobId, TenantId

# What a payload template may refer to.
TEMPLATE_NAMES = frozenset({"event", "event_name", "event_id", "emitted_at", "tenant"})
MOST_TRIGGERS = 500
"""How many triggers an event is given to."""
EVENT_BUDGET = 16 * 1024 * 1024
"""Characters that all triggers of an event may read and make together."""
_LONGEST_NAME = 200


class UnknownPaths(StrEnum):
    """What becomes of a template's path that leads nowhere and has no default."""

    REFUSE = "refuse"
    NULL = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Everything about a trigger that a person decides, but for whether it is enabled."""

    name: str
    event: str
    definition: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    unknown_paths: UnknownPaths = UnknownPaths.REFUSE
    dedupe_window: timedelta | None = None
    queue: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerState:
    """A trigger as it is stored, with what came of it last."""

    id: int
    tenant_id: TenantId
    trigger: Trigger
    is_enabled: bool
    created_at: datetime
    updated_at: datetime
    last_dispatched_at: datetime | None
    last_outcome: DispatchOutcome | None
    last_event_id: EventId | None
    last_job_id: JobId | None
    last_error: str | None

    @property
    def name(self) -> str:
        return self.trigger.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """An event as a template sees it."""

    event_id: int
    name: str
    tenant_id: str
    emitted_at: datetime
    context: Mapping[str, Any]

    def source(self, largest: int) -> JsonSource:
        """What the names of a payload template stand for. One payload may have `largest` bytes;
        the budget is for all triggers of the event."""
        names = {
            "event": self.context,
            "event_name": self.name,
            "event_id": self.event_id,
            "emitted_at": instant_text(self.emitted_at),
            "tenant": self.tenant_id,
        }
        size = max(EVENT_BUDGET, largest)
        problem = f"the triggers of the event read and make more than {size:,} characters"
        return JsonSource(names, Budget(size, problem))


def ensure_trigger(trigger: Trigger) -> None:
    """Refuse what cannot be; not done by a trigger itself, since plain SQL can write what is
    found out only when it is rendered."""
    _ensure_text("name", trigger.name)
    _ensure_text("definition", trigger.definition)
    ensure_pattern(trigger.event)
    if not isinstance(trigger.payload, Mapping):
        kind = type(trigger.payload).__name__
        raise InvalidTrigger("payload", f"must be a JSON object, not {kind}")
    templates.check(dict(trigger.payload), TEMPLATE_NAMES)
    if trigger.unknown_paths not in tuple(UnknownPaths):
        words = " or ".join(UnknownPaths)
        raise InvalidTrigger("unknown_paths", f"must be {words}, not {trigger.unknown_paths!r}")
    _ensure_window(trigger.dedupe_window)
    if trigger.queue is not None:
        ensure_queue(trigger.queue)
    if trigger.priority is not None:
        ensure_priority(trigger.priority)


def render(payload: object, source: JsonSource, unknown_paths: str, *, largest: int) -> Any:
    """The payload of the job that an event makes, which has at most `largest` bytes."""
    refuses = unknown_paths != UnknownPaths.NULL
    return templates.render(payload, source, refuses_unknown=refuses, largest=largest)


def _ensure_text(field_name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise InvalidTrigger(field_name, f"must be a string of 1 to {_LONGEST_NAME} characters")
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidTrigger(field_name, "must be Unicode text without a NUL byte")


def _ensure_window(window: object) -> None:
    if window is None:
        return
    if not isinstance(window, timedelta):
        said = "a timedelta, such as timedelta(minutes=5)"
        raise InvalidTrigger("dedupe_window", f"must be {said}, not {type(window).__name__}")
    if not timedelta(0) < window <= LONGEST_DELAY:
        days = f"{LONGEST_DELAY.days:,} days"
        raise InvalidTrigger("dedupe_window", f"must be more than 0 and at most {days}")
