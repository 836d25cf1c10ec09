"""Long-running processes in responses."""

from datetime import datetime

from mainspring.api.models.base import Answer, IdOut
from mainspring.domain.processes import Process, ProcessKind, SystemStatus


class ProcessModel(Answer):
    """A long-running process in one of its roles, and whether it is alive. Of processes that all
    tenants share, only operators see the name, the host, the pid and the address. Fields of other
    roles are null."""

    id: IdOut
    kind: ProcessKind
    name: str
    host: str | None
    pid: int | None
    version: str
    schema_number: int | None
    started_at: datetime
    seen_at: datetime
    expires_at: datetime
    is_alive: bool
    is_stopping: bool
    clock_offset_ms: int | None
    round_trip_ms: float | None
    queues: list[str] | None
    concurrency: int | None
    running: int | None
    leads: bool | None
    checked_at: datetime | None
    address: str | None

    @classmethod
    def of(cls, process: Process) -> "ProcessModel":
        return cls.model_construct(**{name: getattr(process, name) for name in cls.model_fields})


class QueueAgeModel(Answer):
    """A queue and since when its first ready job has been ready."""

    name: str
    oldest_ready_at: datetime


class StatusModel(Answer):
    """What all processes do together: the scheduler that leads, the event and the jobs that have
    waited for longest, and the database."""

    leader: ProcessModel | None
    oldest_event_at: datetime | None
    queues: list[QueueAgeModel]
    database_version: str
    schema_number: int

    @classmethod
    def of(cls, status: SystemStatus) -> "StatusModel":
        return cls.model_construct(
            leader=None if status.leader is None else ProcessModel.of(status.leader),
            oldest_event_at=status.oldest_event_at,
            queues=[QueueAgeModel.model_construct(**each._asdict()) for each in status.queues],
            database_version=status.database_version,
            schema_number=status.schema_number,
        )
