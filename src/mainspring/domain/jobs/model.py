"""Jobs: their states and legal moves, what a handler may answer, and what an enqueue may ask.

enqueue ─▶ awaiting_approval ─▶┐
       ├─▶ blocked ───────────▶ queued ─▶ running ─▶ succeeded
       └──────────────────────▶┘  │  ▲      ├─▶ failed       told not to retry
                                  │  └──────┤                retry later, snooze, lease lost
                 canceled ◀───────┴─────────┼─▶ dead_letter  attempts used up
                                            └─▶ canceled
failed, dead_letter, canceled ──retry now──▶ queued
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from mainspring.domain.errors import IllegalMove
from mainspring.domain.types import (
    AttemptStatus,
    Delivery,
    EventId,
    JobId,
    JobSource,
    JobState,
    Payload,
    TenantId,
    WaitsFor,
    WorkerId,
)

MAX_LOSSES = 3

LIVE_STATES = frozenset(
    {JobState.AWAITING_APPROVAL, JobState.BLOCKED, JobState.QUEUED, JobState.RUNNING}
)
FINAL_STATES = frozenset(JobState) - LIVE_STATES

# What is retried has to be approved, and to wait for its parents, as if it were new.
_RETRIED = frozenset({JobState.AWAITING_APPROVAL, JobState.BLOCKED, JobState.QUEUED})

MOVES: Mapping[JobState, frozenset[JobState]] = MappingProxyType(
    {
        JobState.AWAITING_APPROVAL: frozenset(
            {JobState.BLOCKED, JobState.QUEUED, JobState.CANCELED}
        ),
        JobState.BLOCKED: frozenset({JobState.QUEUED, JobState.CANCELED}),
        JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELED}),
        JobState.RUNNING: frozenset(
            {
                JobState.SUCCEEDED,
                JobState.FAILED,
                JobState.DEAD_LETTER,
                JobState.CANCELED,
                JobState.QUEUED,
            }
        ),
        JobState.SUCCEEDED: frozenset(),
        JobState.FAILED: _RETRIED,
        JobState.DEAD_LETTER: _RETRIED,
        JobState.CANCELED: _RETRIED,
    }
)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress that a running job reported."""

    current: float
    total: float | None = None
    message: str | None = None
    data: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """One request to run a definition, as lists show it: of its progress without data, and with
    the beginning of its last error."""

    id: JobId
    tenant_id: TenantId
    definition: str
    queue: str
    state: JobState
    priority: int
    created_at: datetime
    scheduled_for: datetime
    waits_for: WaitsFor | None = None
    attempt: int = 0
    failures: int = 0
    max_attempts: int = 3
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deadline_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    dedupe_key: str | None = None
    correlation_id: str | None = None
    tags: tuple[str, ...] = ()
    progress: Progress | None = None
    last_error: str | None = None
    created_by: str | None = None
    source: str = JobSource.CODE
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    schedule: str | None = None
    slot_at: datetime | None = None
    trigger: str | None = None
    event_id: EventId | None = None
    flow_id: int | None = None
    parent_ids: tuple[JobId, ...] = ()
    worker_id: WorkerId | None = None
    definition_version: int = 1
    error_key: str | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(JobSummary):
    """One request to run a definition, with all that is kept of it; `result` is None until it has
    ended."""

    payload: Payload
    checkpoint: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedJob(JobSummary):
    """A job as its stream shows it: with its progress and last error whole, and once it has ended
    with its result, unless that is too large."""

    result: Any = None
    is_result_omitted: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a job; `number` starts at 1. `late_report` is what a worker reported after
    it had lost its lease; its error then follows that of the attempt."""

    job_id: JobId
    number: int
    status: AttemptStatus
    worker: str
    started_at: datetime
    finished_at: datetime | None
    error: str | None
    late_report: str | None
    pid: int | None = None
    exit_code: int | None = None
    stdout_tail: str | None = None
    stderr_tail: str | None = None
    late_report_at: datetime | None = None
    error_key: str | None = None


def ensure_can_move(job: Job, target: JobState) -> None:
    if target not in MOVES[job.state]:
        raise IllegalMove(job.id, job.state, target)
