"""Background jobs and schedules for teams that already run PostgreSQL."""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"

__all__ = [
    "Attempt",
    "AttemptStatus",
    "Backoff",
    "Cancel",
    "CatchUp",
    "Context",
    "DefinitionState",
    "DstFold",
    "DstGap",
    "Fail",
    "Fire",
    "Job",
    "JobCanceled",
    "JobFunction",
    "JobHandle",
    "JobState",
    "Launch",
    "Launcher",
    "Mainspring",
    "MainspringError",
    "Overlap",
    "Progress",
    "ScheduleSpec",
    "ScheduleState",
    "Slot",
    "SlotInfo",
    "SlotOutcome",
    "SlotTrigger",
    "Snooze",
    "TenantState",
    "Triggered",
]

_HOMES = {
    "app": ("Mainspring",),
    "domain.cron": ("DstFold", "DstGap"),
    "domain.definitions": ("DefinitionState",),
    "domain.errors": ("MainspringError",),
    "domain.jobs": ("Attempt", "Cancel", "Fail", "Job", "Progress", "Snooze"),
    "domain.retry": ("Backoff",),
    "domain.schedules": ("ScheduleSpec", "ScheduleState"),
    "domain.slots": ("CatchUp", "Overlap", "SlotOutcome", "SlotTrigger"),
    "domain.tenants": ("TenantState",),
    "domain.timings": ("Fire",),
    "domain.types": ("AttemptStatus", "JobState"),
    "functions": ("JobFunction", "JobHandle"),
    "runtime.context": ("Context", "JobCanceled", "SlotInfo"),
    "runtime.launchers": ("Launch", "Launcher"),
    "services.schedules": ("Triggered",),
    "store.slots": ("Slot",),
}

if _typing.TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.domain.cron import DstFold, DstGap
    from mainspring.domain.definitions import DefinitionState
    from mainspring.domain.errors import MainspringError
    from mainspring.domain.jobs import Attempt, Cancel, Fail, Job, Progress, Snooze
    from mainspring.domain.retry import Backoff
    from mainspring.domain.schedules import ScheduleSpec, ScheduleState
    from mainspring.domain.slots import CatchUp, Overlap, SlotOutcome, SlotTrigger
    from mainspring.domain.tenants import TenantState
    from mainspring.domain.timings import Fire
    from mainspring.domain.types import AttemptStatus, JobState
    from mainspring.functions import JobFunction, JobHandle
    from mainspring.runtime.context import Context, JobCanceled, SlotInfo
    from mainspring.runtime.launchers import Launch, Launcher
    from mainspring.services.schedules import Triggered
    from mainspring.store.slots import Slot
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
