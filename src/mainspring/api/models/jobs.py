"""Jobs and their attempts in requests and answers."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    DurationIn,
    IdIn,
    IdOut,
    InstantIn,
    LongText,
    Name,
    Object,
    Text,
)
from mainspring.domain.jobs.model import Attempt, Job, JobSummary
from mainspring.domain.summaries import Summary
from mainspring.domain.types import AttemptStatus, Delivery, JobState, WaitsFor


class ProgressModel(Answer):
    """Progress reported by a running job."""

    current: float
    total: float | None
    message: str | None
    data: Any


class JobFacts(Answer):
    """What every answer says of a job."""

    id: IdOut
    tenant: str
    definition: str
    queue: str
    state: JobState
    waits_for: WaitsFor | None = Field(description="What the job waits for, if it is not ready.")
    priority: int
    source: str = Field(
        description="Where it came from: code, api, schedule, trigger, job, or as the enqueue says."
    )
    created_by: str | None = Field(
        description="Who enqueued it: a person or token, whoever code named, trigger: and a name, "
        "system:scheduler: and a launcher or schedule, job: and an id; null for code."
    )
    created_at: datetime
    scheduled_for: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    attempt: int
    failures: int
    max_attempts: int
    delivery: Delivery
    dedupe_key: str | None
    correlation_id: str | None
    tags: list[str]
    progress: ProgressModel | None
    last_error: str | None
    schedule: str | None = Field(description="The schedule that enqueued it.")
    slot_at: datetime | None = Field(description="The slot of that schedule.")
    trigger: str | None = Field(description="The trigger that enqueued it.")
    event_id: IdOut | None = Field(description="The event that it was enqueued for.")
    flow_id: IdOut | None = Field(description="The flow that it belongs to.")
    parent_ids: list[IdOut] = Field(
        description="The jobs that it waited for, and the one that enqueued it while it ran."
    )
    worker_id: IdOut | None = Field(
        description="The worker that runs it; of a single job that has ended, that ran it last."
    )
    definition_version: int
    error_key: str | None = Field(
        description="Group of the last error, as in /errors; null if no attempt failed."
    )

    @classmethod
    def of(cls, job: JobSummary) -> Self:
        own = {name: getattr(job, name) for name in cls.model_fields if hasattr(job, name)}
        own |= {"tenant": job.tenant_id, "tags": list(job.tags)}
        own["parent_ids"] = list(job.parent_ids)
        if job.progress is not None:
            own["progress"] = ProgressModel.model_construct(**asdict(job.progress))
        return cls.model_construct(**own)


class JobSummaryModel(JobFacts):
    """A job in a list. Its progress has no data, and the first 200 characters of the message;
    `last_error` is its first line, up to 1,000 characters. `payload` and `result` are there only if
    `include` names them."""

    payload: Object | None = None
    result: Any = None

    @classmethod
    def including(cls, summary: JobSummary, job: Job, names: Iterable[str]) -> Self:
        """With some of what the whole job has."""
        made = cls.of(summary)
        for name in names:
            setattr(made, name, getattr(job, name))
        return made


class JobModel(JobFacts):
    """One request to run a definition. Secrets in its payload are shown as [redacted]."""

    payload: Object
    checkpoint: Any
    result: Any


class WatchedJobModel(JobFacts):
    """A job in its stream. The result comes with the last event. If it is too large for that,
    `is_result_omitted` is true, and `GET /jobs/{job_id}` returns it."""

    result: Any
    is_result_omitted: bool


class SummaryModel(Answer):
    """Number of jobs by state: live jobs as of a second ago, finished jobs as long as they are
    kept; `today` counts jobs that finished since midnight UTC. For a member, finished jobs are not
    counted, and their states are missing."""

    counts: dict[JobState, int]
    today: dict[JobState, int]
    waiting: int = Field(description="Queued jobs that wait for a time, a limit or a turn.")
    oldest_ready_at: datetime | None

    @classmethod
    def of(cls, summary: Summary) -> "SummaryModel":
        return cls.model_construct(
            counts=dict(summary.counts),
            today=dict(summary.today),
            waiting=summary.waiting,
            oldest_ready_at=summary.oldest_ready_at,
        )


class AttemptModel(Answer):
    """One execution of a job; a running one has no `finished_at`."""

    number: int
    state: AttemptStatus
    worker: str
    started_at: datetime
    finished_at: datetime | None
    error: str | None
    late_report: str | None = Field(description="What a worker reported after losing its lease.")
    late_report_at: datetime | None = Field(description="When it reported that.")
    pid: int | None
    exit_code: int | None
    stdout_tail: str | None
    stderr_tail: str | None
    error_key: str | None = Field(description="Group of the error, as in /errors.")

    @classmethod
    def of(cls, attempt: Attempt) -> "AttemptModel":
        own = {name: getattr(attempt, name) for name in cls.model_fields if hasattr(attempt, name)}
        return cls.model_construct(**own, state=attempt.status)


class EnqueuedModel(Answer):
    """The requested job; `is_new` is false if its key belongs to an existing job. `job` is null if
    that one belongs to someone else and the caller is a member, who sees only its own."""

    id: IdOut
    is_new: bool
    job: JobModel | None


class EnqueuedManyModel(Answer):
    """The jobs that were enqueued, in the order of their payloads."""

    ids: list[IdOut]


class StateModel(Answer):
    """The job's new state; a running job was asked to stop and will do so shortly."""

    id: IdOut
    state: JobState


Priority = Annotated[int, Field(ge=0, le=1000)]
Tags = Annotated[list[Text], Field(max_length=50)]


class JobOptions(Body):
    """Options of jobs besides definition and payload."""

    queue: Text | None = None
    priority: Priority | None = Field(None, description="From 0 (first) to 1000 (last).")
    max_attempts: Annotated[int, Field(ge=1, le=1000)] | None = None
    scheduled_for: InstantIn | None = None
    delay: DurationIn | None = Field(None, description="Seconds before the job may start.")
    correlation_id: Text | None = None
    tags: Tags = []
    limit_key: Text | None = None
    approvals_needed: Annotated[int, Field(ge=0, le=100)] | None = None
    created_by: Text | None = Field(
        None, description="On whose behalf it is enqueued; members can only name themselves."
    )
    source: Text | None = Field(None, description="Where it comes from, such as `checkout`.")
    delivery: Literal["at_least_once", "at_most_once"] | None = Field(
        None, description="at_most_once: a job whose worker died is not run again."
    )


class NewJob(JobOptions):
    """One job to enqueue."""

    definition: Name
    payload: Object = {}
    deadline: InstantIn | None = Field(
        None, description="Cancel the job if it has not started by then."
    )
    dedupe_key: Text | None = None
    dedupe_by: Literal["content"] | None = None
    dedupe_window: DurationIn | None = None
    on_duplicate: Literal["raise", "existing"] = "raise"
    after: Annotated[list[IdIn], Field(max_length=1000)] = []
    on_parent_failure: Literal["cancel", "continue", "wait"] = "cancel"


class NewJobs(JobOptions):
    """Jobs of one definition to enqueue together: all or none."""

    definition: Name
    deadline: InstantIn | None = Field(
        None, description="Cancel the job if it has not started by then."
    )
    payloads: Annotated[list[Object], Field(min_length=1, max_length=10_000)]
    dedupe_keys: Annotated[list[Text | None], Field(max_length=10_000)] | None = None


class Reason(Body):
    """Why it is done."""

    reason: LongText = ""


class Decision(Reason):
    """Why a job may run; `by` is the person on whose behalf an operator decides."""

    by: Text | None = None


class Rejection(Decision):
    """Why a job must not run."""

    reason: Text


class Edit(Body):
    """A new payload for the retried job; [redacted] keeps the stored secret."""

    payload: Object | None = None
