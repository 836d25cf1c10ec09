"""How the jobs of a tenant stand, in figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mainspring.domain.types import JobState


@dataclass(frozen=True, slots=True)
class Summary:
    """Jobs by state: live ones as they were a moment ago, ended ones as far as they are kept.

    `waiting` of those that are queued wait for a time, a limit or a turn; `oldest_ready_at` is
    since when the first of the others could run. `today` counts what ended since midnight UTC.
    States that were not counted are missing.
    """

    counts: Mapping[JobState, int]
    today: Mapping[JobState, int]
    waiting: int
    oldest_ready_at: datetime | None
