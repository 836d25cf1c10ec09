"""The words of the system as types: identifiers, states and the reasons to wait."""

from datetime import timedelta
from enum import StrEnum
from typing import Any, NewType

JobId = NewType("JobId", int)
EventId = NewType("EventId", int)
TenantId = NewType("TenantId", str)
WorkerId = NewType("WorkerId", int)
Fence = NewType("Fence", int)

Json = dict[str, Any] | list[Any] | str | int | float | bool | None
Payload = dict[str, Any]

DEFAULT_TENANT = TenantId("default")
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 100
# What the keys of definitions that come with Mainspring begin with.
BUILT_IN = "mainspring."
# Far beyond any use, and far from the instants that the database cannot add up to.
LONGEST_DELAY = timedelta(days=36_500)


class JobState(StrEnum):
    """Where a job stands; which moves are legal is in `domain.jobs`."""

    AWAITING_APPROVAL = "awaiting_approval"
    BLOCKED = "blocked"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELED = "canceled"


class JobSource(StrEnum):
    """Where a job came from, unless its enqueue says another word for it."""

    CODE = "code"
    API = "api"
    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    JOB = "job"
    SYSTEM = "system"


class SlotTrigger(StrEnum):
    """What made a slot fire."""

    SCHEDULER = "scheduler"
    CATCH_UP = "catchup"
    MANUAL = "manual"
    BACKFILL = "backfill"


class WaitsFor(StrEnum):
    """What a live job waits for before it can be claimed; a ready job waits for nothing."""

    TIME = "time"
    LIMIT = "limit"
    APPROVAL = "approval"
    PARENTS = "parents"
    HANDLER = "handler"
    TURN = "turn"


class AttemptStatus(StrEnum):
    """The outcome of one execution of a job."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    SNOOZED = "snoozed"
    LOST = "lost"


class Delivery(StrEnum):
    """Whether a job whose worker died is run again."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Kind(StrEnum):
    """What runs the jobs of a definition: a handler in code, nothing but the definition, or a
    program that claims them over the API."""

    PYTHON = "python"
    SQL = "sql"
    COMMAND = "command"
    REMOTE = "remote"


class ExecutionMode(StrEnum):
    """Where a handler runs; a stored one is a definition that the worker itself carries out."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"
    STORED = "stored"


class BulkAction(StrEnum):
    """What is done to every job that passes."""

    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"
