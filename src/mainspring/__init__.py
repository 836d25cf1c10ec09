"""Background jobs and schedules for teams that already run PostgreSQL."""

from mainspring.app import Mainspring
from mainspring.domain.errors import MainspringError
from mainspring.domain.jobs import Attempt, Cancel, Fail, Job, Progress, Snooze
from mainspring.domain.retry import Backoff
from mainspring.domain.types import AttemptStatus, JobState
from mainspring.functions import JobFunction, JobHandle
from mainspring.runtime.context import Context, JobCanceled

__version__ = "0.1.0"

__all__ = [
    "Attempt",
    "AttemptStatus",
    "Backoff",
    "Cancel",
    "Context",
    "Fail",
    "Job",
    "JobCanceled",
    "JobFunction",
    "JobHandle",
    "JobState",
    "Mainspring",
    "MainspringError",
    "Progress",
    "Snooze",
]
