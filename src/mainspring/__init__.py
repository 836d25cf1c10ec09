"""Background jobs and schedules for teams that already run PostgreSQL."""

import importlib as _importlib
import typing as _typing

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

_HOMES = {
    "app": ("Mainspring",),
    "domain.errors": ("MainspringError",),
    "domain.jobs": ("Attempt", "Cancel", "Fail", "Job", "Progress", "Snooze"),
    "domain.retry": ("Backoff",),
    "domain.types": ("AttemptStatus", "JobState"),
    "functions": ("JobFunction", "JobHandle"),
    "runtime.context": ("Context", "JobCanceled"),
}

if _typing.TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.domain.errors import MainspringError
    from mainspring.domain.jobs import Attempt, Cancel, Fail, Job, Progress, Snooze
    from mainspring.domain.retry import Backoff
    from mainspring.domain.types import AttemptStatus, JobState
    from mainspring.functions import JobFunction, JobHandle
    from mainspring.runtime.context import Context, JobCanceled
else:

    def __getattr__(name: str) -> object:
        """Import on first use: the pytest plugin is in this package and loads in every run."""
        for home, names in _HOMES.items():
            if name in names:
                found = getattr(_importlib.import_module(f"mainspring.{home}"), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
