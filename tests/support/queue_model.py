"""The queue as a small model in plain Python: the oracle of the state machine test.

It knows what a job is to become, along `domain.jobs.MOVES` alone, and nothing of SQL. Instants
are whole days after the start, so that the seconds a run takes change nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from mainspring.domain.errors import DuplicateJob, IdempotencyConflict, IllegalMove
from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES, MOVES
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import AttemptStatus, JobId, JobState, WaitsFor

NOW = timedelta(0)


class Lease(NamedTuple):
    """A claim of one job by one worker."""

    job_id: int
    fence: int
    worker_id: int


@dataclass
class Execution:
    """What an attempt row must say."""

    number: int
    fence: int
    status: AttemptStatus
    late_report: AttemptStatus | None = None


@dataclass
class ModelJob:
    """A job; `due_in` and `deadline_in` count from the start."""

    job_id: int
    definition: str
    payload: dict[str, Any]
    tenant_id: str
    queue: str
    priority: int
    dedupe_key: str | None = None
    due_in: timedelta = NOW
    deadline_in: timedelta | None = None
    state: JobState = JobState.QUEUED
    waits_for: WaitsFor | None = None
    lease: Lease | None = None
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    is_alone: bool = False
    is_asked_to_cancel: bool = False
    executions: list[Execution] = field(default_factory=list)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def is_claimable(self) -> bool:
        is_ready = self.state is JobState.QUEUED and self.waits_for is None
        return is_ready and not self.is_asked_to_cancel

    def move(self, target: JobState) -> None:
        assert target in MOVES[self.state], f"the model itself moves {self.state} to {target}"
        self.state = target
        if target is not JobState.RUNNING:
            self.lease = None

    def wait_until(self, due_in: timedelta, waits_for: WaitsFor | None = WaitsFor.TIME) -> None:
        self.due_in = due_in
        self.waits_for = waits_for if due_in > NOW or waits_for is WaitsFor.HANDLER else None


@dataclass(frozen=True)
class Reservation:
    """A key that outlives its job."""

    job_id: int
    fingerprint: str | None = None


# Of a payload, by tenant and definition. Its key is the installation's, which no model knows.
Digest = Callable[[str, str, dict[str, Any]], str]


class QueueModel:
    """Every job that was enqueued and not deleted, and who holds what."""

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self.jobs: dict[int, ModelJob] = {}
        self.is_alive: dict[int, bool] = {}
        self.old_leases: list[Lease] = []
        self.reservations: dict[tuple[str, str, str], Reservation] = {}

    # Who is where

    def claimable(self, worker_id: int) -> list[int]:
        """What the worker may claim, in the order of claiming; nothing after its lease ran out."""
        ready = [job for job in self.jobs.values() if job.is_claimable]
        ready.sort(key=lambda job: (job.priority, job.tenant_id, job.queue, job.job_id))
        return [job.job_id for job in ready] if self.is_alive[worker_id] else []

    def live(self) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.state in LIVE_STATES]

    def running(self) -> Iterator[ModelJob]:
        return (job for job in self.jobs.values() if job.state is JobState.RUNNING)

    def lost(self) -> set[int]:
        """Running jobs whose worker has no lease any more."""
        return {
            job.job_id
            for job in self.running()
            if job.lease and not self.is_alive.get(job.lease.worker_id, False)
        }

    def leases(self) -> list[Lease]:
        """The current ones and the last of those that ended."""
        return [*(job.lease for job in self.running() if job.lease), *self.old_leases[-2:]]

    def is_current(self, lease: Lease) -> bool:
        job = self.jobs.get(lease.job_id)
        return job is not None and job.lease == lease

    def holder(self, tenant_id: str, dedupe_key: str | None) -> int | None:
        """The live job that has the key."""
        for job in self.jobs.values():
            is_same = (job.tenant_id, job.dedupe_key) == (tenant_id, dedupe_key)
            if dedupe_key and is_same and job.state in LIVE_STATES:
                return job.job_id
        return None

    # Enqueue

    def dedupe_key(
        self, definition: str, payload: dict[str, Any], options: EnqueueOptions
    ) -> str | None:
        if options.dedupe_by == "content":
            return self.content_key(options.tenant_id, definition, payload)
        return options.dedupe_key

    def content_key(self, tenant_id: str, definition: str, payload: dict[str, Any]) -> str:
        return f"content:{self.digest(tenant_id, definition, payload)}"

    def earlier(
        self, definition: str, payload: dict[str, Any], options: EnqueueOptions
    ) -> int | None:
        """The job an enqueue would meet instead of making one; raises what it must raise."""
        used = self.reservations.get(_idempotency(options))
        if options.idempotency_key and used:
            if used.fingerprint != self.digest(options.tenant_id, definition, payload):
                raise IdempotencyConflict(options.idempotency_key, JobId(used.job_id))
            return used.job_id
        key = self.dedupe_key(definition, payload, options)
        found = self.holder(options.tenant_id, key)
        if key and options.dedupe_window:
            window = self.reservations.get((options.tenant_id, "window", key))
            found = window.job_id if window else found
        if found and options.on_duplicate == "raise":
            raise DuplicateJob(key or "", JobId(found))
        return found

    def reserve(
        self, job_id: int, definition: str, payload: dict[str, Any], *, options: EnqueueOptions
    ) -> None:
        """Note the keys an enqueue leaves behind; they lead to the job it gave back."""
        if _idempotency(options) in self.reservations:
            return
        if options.idempotency_key:
            used = Reservation(job_id, self.digest(options.tenant_id, definition, payload))
            self.reservations[_idempotency(options)] = used
        window = (options.tenant_id, "window", self.dedupe_key(definition, payload, options) or "")
        met_earlier = job_id in self.jobs
        if options.dedupe_window or (met_earlier and window in self.reservations):
            self.reservations[window] = Reservation(job_id)

    def add(
        self, job_id: int, definition: str, payload: dict[str, Any], *, options: EnqueueOptions
    ) -> ModelJob:
        assert job_id not in self.jobs
        job = ModelJob(
            job_id=job_id,
            definition=definition,
            payload=payload,
            tenant_id=options.tenant_id,
            queue=options.queue or "a",
            priority=options.priority or 100,
            dedupe_key=self.dedupe_key(definition, payload, options),
        )
        job.wait_until(options.delay or NOW)
        self.jobs[job_id] = job
        return job

    # Lives of jobs

    def claim(self, job: ModelJob, lease: Lease) -> None:
        job.move(JobState.RUNNING)
        job.lease = lease
        job.attempt += 1
        job.is_alone = False

    def accepts(self, lease: Lease) -> bool:
        """Whether what a worker reports of this lease counts."""
        return self.is_current(lease) and self.is_alive.get(lease.worker_id, False)

    def leave(self, job: ModelJob, target: JobState, status: AttemptStatus | None) -> None:
        """End the lease; without a status there was no execution."""
        lease = job.lease
        assert lease is not None
        self.old_leases.append(lease)
        job.move(target)
        if status is None:
            job.attempt -= 1
        else:
            job.executions.append(Execution(job.attempt, lease.fence, status))

    def lose(self, job: ModelJob, max_losses: int) -> None:
        """What recovery does with a job of a dead worker."""
        job.losses += job.is_alone
        if job.is_alone and job.losses >= max_losses:
            self.leave(job, JobState.DEAD_LETTER, AttemptStatus.LOST)
            return
        self.leave(job, JobState.QUEUED, AttemptStatus.LOST)
        job.wait_until(timedelta(days=1))

    def cancel(self, job: ModelJob) -> JobState:
        """The state the caller is told."""
        if job.state is JobState.CANCELED:
            return job.state
        if JobState.CANCELED not in MOVES[job.state]:
            raise IllegalMove(JobId(job.job_id), job.state, JobState.CANCELED)
        job.is_asked_to_cancel = True
        if job.state is JobState.RUNNING:
            return job.state
        return self.end_waiting(job)

    def end_waiting(self, job: ModelJob) -> JobState:
        job.move(JobState.CANCELED)
        job.waits_for = None
        return job.state

    def retry(self, job: ModelJob, payload: dict[str, Any] | None) -> None:
        if not job.is_final or JobState.QUEUED not in MOVES[job.state]:
            raise IllegalMove(JobId(job.job_id), job.state, JobState.QUEUED)
        after = payload or job.payload
        key = job.dedupe_key
        if key == self.content_key(job.tenant_id, job.definition, job.payload):
            key = self.content_key(job.tenant_id, job.definition, after)
        if holder := self.holder(job.tenant_id, key):
            raise DuplicateJob(key or "", JobId(holder))
        job.move(JobState.QUEUED)
        job.wait_until(NOW)
        job.deadline_in, job.failures, job.losses = None, 0, 0
        job.is_alone = job.is_asked_to_cancel = False
        job.payload, job.dedupe_key = after, key

    def delete(self, job: ModelJob) -> None:
        if job.state is JobState.RUNNING:
            raise IllegalMove(JobId(job.job_id), job.state, "deleted")
        del self.jobs[job.job_id]

    def report_late(self, leases: Iterable[Lease], status: AttemptStatus) -> int:
        """How many late reports are kept: those of executions that count as lost."""
        lost = [
            execution
            for lease in leases
            for execution in self._executions(lease)
            if execution.status is AttemptStatus.LOST
        ]
        for execution in lost:
            execution.late_report = status
        return len(lost)

    def _executions(self, lease: Lease) -> list[Execution]:
        job = self.jobs.get(lease.job_id)
        return [e for e in job.executions if e.fence == lease.fence] if job else []


def _idempotency(options: EnqueueOptions) -> tuple[str, str, str]:
    return options.tenant_id, "idempotency", options.idempotency_key or ""
