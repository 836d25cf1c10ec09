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
    "client": ("AsyncClient", "Client"),
    "domain.approvals": ("Approval", "Vote"),
    "domain.client_errors": ("ApiError",),
    "domain.cron": ("DstFold", "DstGap"),
    "domain.definitions": ("DefinitionState",),
    "domain.errors": ("MainspringError",),
    "domain.flows": ("FlowJob", "FlowState", "FlowSummary", "Parent", "Step"),
    "domain.events": ("Dispatch", "DispatchOutcome", "Event"),
    "domain.jobs": ("Attempt", "Cancel", "Fail", "Job", "Progress", "Snooze"),
    "domain.limits": ("LimitState",),
    "domain.retry": ("Backoff",),
    "domain.schedules": ("ScheduleSpec", "ScheduleState"),
    "domain.slots": ("CatchUp", "Overlap", "SlotOutcome", "SlotTrigger"),
    "domain.tenants": ("TenantState",),
    "domain.timings": ("Fire",),
    "domain.triggers": ("Trigger", "TriggerState", "UnknownPaths"),
    "domain.types": ("AttemptStatus", "JobState"),
    "flowing": ("Flow", "FlowHandle"),
    "functions": ("JobFunction", "JobHandle"),
    "runtime.context": ("Context", "JobCanceled", "SlotInfo"),
    "runtime.launchers": ("Launch", "Launcher"),
    "services.schedules": ("Triggered",),
    "store.slots": ("Slot",),
}

if _typing.TYPE_CHECKING:
    from mainspring.app import Mainspring
    from mainspring.client import AsyncClient, Client
    from mainspring.domain.approvals import Approval, Vote
    from mainspring.domain.client_errors import ApiError
    from mainspring.domain.cron import DstFold, DstGap
    from mainspring.domain.definitions import DefinitionState
    from mainspring.domain.errors import MainspringError
    from mainspring.domain.events import Dispatch, DispatchOutcome, Event
    from mainspring.domain.flows import FlowJob, FlowState, FlowSummary, Parent, Step
    from mainspring.domain.jobs import Attempt, Cancel, Fail, Job, Progress, Snooze
    from mainspring.domain.limits import LimitState
    from mainspring.domain.retry import Backoff
    from mainspring.domain.schedules import ScheduleSpec, ScheduleState
    from mainspring.domain.slots import CatchUp, Overlap, SlotOutcome, SlotTrigger
    from mainspring.domain.tenants import TenantState
    from mainspring.domain.timings import Fire
    from mainspring.domain.triggers import Trigger, TriggerState, UnknownPaths
    from mainspring.domain.types import AttemptStatus, JobState
    from mainspring.flowing import Flow, FlowHandle
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
