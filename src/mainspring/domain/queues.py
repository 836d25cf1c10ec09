"""Queues: what is in them, and whether they are paused.

While a queue is paused nothing of it is claimed. What a worker had claimed before runs.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.options import ensure_reason

LONGEST_NAME = 500
LONGEST_PAUSE = timedelta(days=36500)


@dataclass(frozen=True, slots=True)
class QueuePause:
    """Who paused a queue, why and until when; without `until` it is until someone resumes it."""

    name: str
    paused_at: datetime
    paused_until: datetime | None
    paused_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """The live jobs of a tenant in a queue, and the pause of the queue if it is paused."""

    name: str
    tenant_id: str
    ready: int
    waiting: int
    running: int
    held: int
    oldest_ready_at: datetime | None
    pause: QueuePause | None


def ensure_pause(
    name: str, reason: str, *, until: datetime | None, duration: timedelta | None
) -> None:
    """Raise InvalidOption for what no queue can be paused with; when `until` is, the database
    knows."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidOption("queue", f"must have 1 to {LONGEST_NAME} characters")
    ensure_reason(reason)
    if until is not None and duration is not None:
        raise InvalidOption("until", "and duration exclude each other")
    if until is not None and until.tzinfo is None:
        raise InvalidOption("until", f"needs a time zone, such as UTC, unlike {until.isoformat()}")
    if duration is not None and not timedelta(0) < duration <= LONGEST_PAUSE:
        raise InvalidOption(
            "duration", f"must be more than zero and at most 100 years, not {duration}"
        )
