"""Background jobs and schedules for teams that already run PostgreSQL."""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "Approval",
    "AsyncClient",
    "Attempt",
    "AttemptStatus",
    "Backoff",
    "Cancel",
    "CatchUp",
    "Client",
    "Context",
    "DefinitionState",
    "Dispatch",
    "DispatchOutcome",
    "DstFold",
    "DstGap",
    "Event",
    "Fail",
    "Fire",
    "Flow",
    "FlowHandle",
    "FlowJob",
    "FlowState",
    "FlowSummary",
    "Job",
    "JobCanceled",
    "JobFunction",
    "JobHandle",
    "JobState",
    "Launch",
    "Launcher",
    "LimitState",
    "Mainspring",
    "MainspringError",
    "Overlap",
    "Parent",
    "Progress",
    "ScheduleSpec",
    "ScheduleState",
    "Slot",
    "SlotInfo",
    "SlotOutcome",
    "SlotTrigger",
    "Snooze",
    "Step",
    "TenantState",
    "Trigger",
    "TriggerState",
    "Triggered",
    "UnknownPaths",
    "Vote",
]

_HOMES = {
    "app": ("Mainspring",),
    "app.flows": ("Flow", "FlowHandle"),
    "app.job_functions": ("JobFunction", "JobHandle"),
    "client": ("AsyncClient", "Client"),
    "domain.approvals": ("Approval", "Vote"),
    "domain.definitions": ("DefinitionState",),
    "domain.errors": ("MainspringError",),
    "domain.errors.client": ("ApiError",),
    "domain.events": ("Dispatch", "DispatchOutcome", "Event"),
    "domain.flows": ("FlowJob", "FlowState", "FlowSummary", "Parent", "Step"),
    "domain.jobs.backoff": ("Backoff",),
    "domain.jobs.model": ("Attempt", "Job", "Progress"),
    "domain.jobs.outcomes": ("Cancel", "Fail", "Snooze"),
    "domain.limits": ("LimitState",),
    "domain.schedules.cron": ("DstFold", "DstGap"),
    "domain.schedules.model": ("ScheduleSpec", "ScheduleState"),
    "domain.schedules.slots": ("CatchUp", "Overlap", "SlotOutcome"),
    "domain.schedules.timing": ("Fire",),
    "domain.tenants": ("TenantState",),
    "domain.triggers": ("Trigger", "TriggerState", "UnknownPaths"),
    "domain.types": ("AttemptStatus", "JobState", "SlotTrigger"),
    "runtime.scheduler.launchers": ("Launch", "Launcher"),
    "runtime.worker.context": ("Context", "JobCanceled", "SlotInfo"),
    "store.schedules": ("Triggered",),
    "store.slots": ("Slot",),
}

if _typing.TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.app.flows import Flow, FlowHandle
    from mainspring.app.job_functions import JobFunction, JobHandle
    from mainspring.client import AsyncClient, Client
    from mainspring.domain.approvals import Approval, Vote
    from mainspring.domain.definitions import DefinitionState
    from mainspring.domain.errors import MainspringError
    from mainspring.domain.errors.client import ApiError
    from mainspring.domain.events import Dispatch, DispatchOutcome, Event
    from mainspring.domain.flows import FlowJob, FlowState, FlowSummary, Parent, Step
    from mainspring.domain.jobs.backoff import Backoff
    from mainspring.domain.jobs.model import Attempt, Job, Progress
    from mainspring.domain.jobs.outcomes import Cancel, Fail, Snooze
    from mainspring.domain.limits import LimitState
    from mainspring.domain.schedules.cron import DstFold, DstGap
    from mainspring.domain.schedules.model import ScheduleSpec, ScheduleState
    from mainspring.domain.schedules.slots import CatchUp, Overlap, SlotOutcome
    from mainspring.domain.schedules.timing import Fire
    from mainspring.domain.tenants import TenantState
    from mainspring.domain.triggers import Trigger, TriggerState, UnknownPaths
    from mainspring.domain.types import AttemptStatus, JobState, SlotTrigger
    from mainspring.runtime.scheduler.launchers import Launch, Launcher
    from mainspring.runtime.worker.context import Context, JobCanceled, SlotInfo
    from mainspring.store.schedules import Triggered
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
