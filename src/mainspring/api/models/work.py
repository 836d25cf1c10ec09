"""What workers over the API say, and what they are told."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    DurationIn,
    DurationOut,
    IdIn,
    IdOut,
    LongText,
    Name,
    Object,
    Text,
)
from mainspring.api.models.definitions import CommonFields
from mainspring.domain.registrations import Change, Registration
from mainspring.services.registrations import Registered
from mainspring.services.work import WorkItem
from mainspring.services.work_reports import MAX_OUTPUT_LENGTH, ReportedOutput
from mainspring.store.work import Stop

OutputText = Annotated[str, Field(max_length=MAX_OUTPUT_LENGTH)]
LeaseSeconds = Annotated[float, Field(ge=5, le=3600)]


class NewWorker(Body):
    """A worker that claims jobs from some queues."""

    name: Name
    queues: Annotated[list[Text], Field(min_length=1, max_length=100)]
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 1
    lease_seconds: LeaseSeconds = 30


class RegisteredModel(Answer):
    """A worker with its lease; send a heartbeat every third of the lease to keep it."""

    worker_id: IdOut
    lease_seconds: float


class NewRegistration(CommonFields):
    """A remote definition as its worker declares it. Fields that are omitted keep what is stored.
    With `revision`, it is written only over a lower revision."""

    key: Name
    revision: Annotated[int, Field(ge=0, le=2**53)] | None = None

    def registration(self) -> Registration:
        fields = {name: value for name, value in self.read().items() if value is not None}
        fields.pop("key")
        return Registration(self.key, fields)


class NewRegistrations(Body):
    """The definitions that a worker runs."""

    definitions: Annotated[list[NewRegistration], Field(min_length=1, max_length=100)]


class RegistrationModel(Answer):
    """What came of a registration: `created`, `updated`, `unchanged`, or `kept` if what is stored
    is another in the fields named by `differs`."""

    key: str
    version: int
    change: Change
    differs: list[str]
    is_active: bool

    @classmethod
    def of(cls, registered: Registered) -> "RegistrationModel":
        state = registered.state
        return cls.model_construct(
            key=state.key,
            version=state.version,
            change=registered.change,
            differs=list(registered.differs),
            is_active=state.is_active,
        )


class RegistrationsModel(Answer):
    """The definitions as they are stored."""

    definitions: list[RegistrationModel]


class Heartbeat(Body):
    """How long the lease should last from now on."""

    lease_seconds: LeaseSeconds = 30


class StopModel(Answer):
    """A job that the worker must stop; the reason is `timeout` if it has run too long."""

    job_id: IdOut
    fence: IdOut
    reason: str

    @classmethod
    def of(cls, stop: Stop) -> "StopModel":
        return cls.model_construct(job_id=stop.job_id, fence=stop.fence, reason=stop.reason)


class KeptModel(Answer):
    """The renewed lease."""

    stop: list[StopModel]


class Claim(Body):
    """What the worker can run, how many jobs at most, and how many seconds to wait for one. With
    `held`, the ids of all jobs that the worker has, a claim can be repeated: jobs that it holds
    without knowing, because a response was lost, are sent again first."""

    definitions: Annotated[list[Name], Field(min_length=1, max_length=1000)]
    limit: Annotated[int, Field(ge=1, le=1000)] = 1
    wait: Annotated[float, Field(ge=0, le=30)] = 0
    held: Annotated[list[IdIn], Field(max_length=10_000)] | None = None


class WorkModel(Answer):
    """A job to run. Send `fence` with every report; `timeout` is in seconds from now."""

    job_id: IdOut
    fence: IdOut
    definition: str
    definition_version: int
    payload: Object
    attempt: int
    max_attempts: int
    queue: str
    tenant: str
    timeout: DurationOut
    checkpoint: Any
    correlation_id: str | None
    tags: list[str]
    slot_at: datetime | None

    @classmethod
    def of(cls, item: WorkItem) -> "WorkModel":
        slot_at = item.extras.get("slot_at")
        return cls.model_construct(
            job_id=item.id,
            fence=item.fence,
            definition=item.definition,
            definition_version=item.version,
            payload=item.payload,
            attempt=item.attempt,
            max_attempts=item.max_attempts,
            queue=item.queue,
            tenant=item.tenant_id,
            timeout=item.timeout,
            checkpoint=item.extras.get("checkpoint"),
            correlation_id=item.extras.get("correlation_id"),
            tags=item.extras.get("tags") or [],
            slot_at=datetime.fromisoformat(slot_at) if slot_at else None,
        )


class ClaimedModel(Answer):
    """The jobs that the worker now holds."""

    jobs: list[WorkModel]


class FencedBody(Body):
    """A report on a job, with the fence it was claimed with."""

    fence: IdIn


class ProgressReport(FencedBody):
    """The progress of a job."""

    current: float
    total: float | None = None
    message: LongText | None = None
    data: Any = None


class CheckpointReport(FencedBody):
    """The state that a later attempt resumes from."""

    checkpoint: Any


class EndReport(FencedBody):
    """How a job ended, with what its program wrote; the last 64 KiB of each stream are kept."""

    stdout: OutputText | None = None
    stderr: OutputText | None = None
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None

    @property
    def output(self) -> ReportedOutput:
        return ReportedOutput(self.stdout, self.stderr, self.exit_code)


class SuccessReport(EndReport):
    """The job succeeded."""

    result: Any = None


class FailureReport(EndReport):
    """The job failed. It is retried as its definition says, unless `retry` is false; after `delay`
    seconds, if given."""

    error: Annotated[str, Field(min_length=1, max_length=100_000)]
    retry: bool = True
    delay: DurationIn | None = None


class CancelReport(EndReport):
    """The job was stopped as requested."""

    reason: Annotated[str, Field(max_length=10_000)] = "canceled"
