"""Error groups: the failed attempts of a tenant that have the same error key."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from mainspring.domain.types import JobId, TenantId

KEPT_DAYS = 90
"""How long failures are counted by day."""
UNSEEN_DAYS = 30
"""A group is new if it was not seen for so long before."""
RECENT = timedelta(days=1)
"""What a list is about unless it says otherwise."""
MOST_JOBS = 5
"""How many of the newest jobs are kept of a group."""


class GroupPlace(NamedTuple):
    """Where a list goes on: behind this group."""

    is_new: bool
    failures: int
    tenant_id: str
    key: str


@dataclass(frozen=True, slots=True)
class ErrorDay:
    """How often a group failed on a day (UTC), in a definition."""

    day: date
    definition: str
    count: int


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """How often attempts failed with one error. `sample` is the error line of the newest, `job_ids`
    are the newest jobs; `days` are there of a single group only."""

    key: str
    tenant_id: TenantId
    sample: str
    count: int
    first_at: datetime
    last_at: datetime
    definitions: Sequence[str]
    job_ids: Sequence[JobId]
    is_new: bool
    days: Sequence[ErrorDay] = ()
