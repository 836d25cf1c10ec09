"""Events: their names, the patterns that match them, and what came of one.

A name is parts with dots between them, such as provider.folder_changed. A pattern is a name, or
the first parts of one and .*, which stands for one or more parts, or * alone for every name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from mainspring.domain.errors import InvalidEvent, InvalidTrigger
from mainspring.domain.types import EventId, JobId, TenantId

ALL = "*"
_REST = ".*"
_LONGEST_NAME = 200
_NAME = re.compile(r"[A-Za-z0-9_:-]+(?:\.[A-Za-z0-9_:-]+)*")


class DispatchOutcome(StrEnum):
    """What a trigger made of an event."""

    ENQUEUED = "enqueued"
    DUPLICATE = "duplicate"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What one trigger made of an event; of a duplicate, the job is the earlier one."""

    trigger: str
    replay: int
    outcome: DispatchOutcome
    job_id: JobId | None
    error: str | None
    dispatched_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; it waits while `handled_at` is None.

    Jobs, duplicates and failures count the newest dispatch of each trigger.
    """

    id: EventId
    tenant_id: TenantId
    name: str
    context: Mapping[str, Any]
    correlation_id: str | None
    emitted_at: datetime
    handled_at: datetime | None
    replays: int
    jobs: int
    duplicates: int
    failures: int
    last_error: str | None
    dispatches: tuple[Dispatch, ...]


def is_name(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text))


def ensure_name(name: object) -> None:
    if not is_name(name):
        raise InvalidEvent(
            "name",
            f"{_shown(name)} must consist of letters, digits and _ : -, in parts separated by "
            f"dots (at most {_LONGEST_NAME} characters)",
        )


def ensure_pattern(pattern: object) -> None:
    if pattern != ALL and not (isinstance(pattern, str) and is_name(pattern.removesuffix(_REST))):
        raise InvalidTrigger(
            "event",
            f"{_shown(pattern)} must be an event name, a prefix followed by .* such as "
            "provider.*, or * for all events",
        )


def matches(pattern: str, name: str) -> bool:
    return pattern in patterns_for(name)


def patterns_for(name: str) -> tuple[str, ...]:
    """Every pattern that matches the name, so that triggers are found by looking up and not by
    trying each; the closest first."""
    parts = name.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return (name, *(prefix + _REST for prefix in prefixes), ALL)


def example_name(pattern: str) -> str:
    """A name that the pattern matches."""
    return "test" if pattern == ALL else re.sub(r"\*$", "test", pattern)


def _shown(text: object) -> str:
    return repr(text[:_LONGEST_NAME] if isinstance(text, str) else text)
