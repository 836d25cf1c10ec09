"""What workers over the API report on the jobs that they run.

A report names the fence under which its job was claimed. One that says how the job ended may be
repeated, since its answer can be lost: the attempt has ended as it says, and the answer is the
same. One that comes after the lease was lost changes nothing; it is kept with the attempt.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import orjson
from psycopg import AsyncConnection

from mainspring.domain.errors import InvalidPayload, PayloadTooLarge
from mainspring.domain.errors.leases import LateReport, LeaseLost, WorkerGone
from mainspring.domain.jobs.model import Progress
from mainspring.domain.jobs.options import (
    MAX_CHECKPOINT_BYTES,
    MAX_PROGRESS_BYTES,
    MAX_RESULT_BYTES,
    holds_nul,
)
from mainspring.domain.jobs.outcomes import End, Outcome, Requeue, Trials, clean, of_failure
from mainspring.domain.jobs.tails import Tail
from mainspring.domain.limits import LimitKey
from mainspring.domain.secrets.paths import MARKED_NAME, USES_MARK, secrets_in
from mainspring.domain.secrets.redaction import MARGIN, NO_SECRETS, Redactor
from mainspring.domain.types import AttemptStatus, JobState
from mainspring.services.job_names import log_about
from mainspring.services.secrets import Owner, key_ring
from mainspring.services.work_leases import WorkLeases
from mainspring.services.work_payloads import read_payload
from mainspring.store import attempts, flows, outputs, recovery
from mainspring.store import work as store
from mainspring.store.attempts import Ending, Return, Successes
from mainspring.store.outputs import Output
from mainspring.store.work import Lease, LeasedJob, PastAttempt

# Of one stream as it is sent; the end of it is kept.
MAX_OUTPUT_LENGTH = 1024 * 1024
_JITTER = timedelta(seconds=1)
_SUCCESS = (AttemptStatus.SUCCEEDED,)
_FAILURE = (AttemptStatus.FAILED, AttemptStatus.TIMEOUT)
_CANCEL = (AttemptStatus.CANCELED,)


class ReportedOutput(NamedTuple):
    """What the program of a job has printed, and how it ended; None for what is not known."""

    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None


class Failure(NamedTuple):
    """Why a job failed, whether it may be tried again, and after how long if the worker says so."""

    error: str
    may_retry: bool = True
    delay: timedelta | None = None


NO_OUTPUT = ReportedOutput()


class _Late(NamedTuple):
    """What is kept of a report without the lease: the first of the statuses that mean the same."""

    statuses: Sequence[AttemptStatus]
    error: str | None
    output: ReportedOutput


@dataclass(frozen=True, slots=True)
class WorkReports:
    """The reports of one caller's workers."""

    leases: WorkLeases

    # While a job runs

    async def progress(self, lease: Lease, progress: Progress) -> None:
        async with self.leases.connected() as connection:
            job = await self.leases.job_of(connection, lease)
            facts = {
                "current": progress.current,
                "total": progress.total,
                "message": progress.message,
                "data": progress.data,
            }
            shown = self._redactor(job).value(facts)
            encoded = _encoded("progress", shown, MAX_PROGRESS_BYTES)
            if not await attempts.store_progress(connection, lease.report, encoded):
                raise LeaseLost(lease.job_id)

    async def checkpoint(self, lease: Lease, checkpoint: Any) -> None:
        async with self.leases.connected() as connection:
            await self.leases.job_of(connection, lease)
            text = _encoded("checkpoint", checkpoint, MAX_CHECKPOINT_BYTES).decode()
            if not await attempts.save_checkpoint(connection, lease.report, text):
                raise LeaseLost(lease.job_id)

    # How it ended. Each says what the job has become: queued if it is tried again.

    async def complete(
        self, lease: Lease, result: Any, output: ReportedOutput = NO_OUTPUT
    ) -> JobState:
        async with self.leases.connected() as connection:
            try:
                job = await self.leases.job_of(connection, lease)
                redactor = self._redactor(job)
                encoded = _encoded_result(redactor, result)
                await _keep(connection, lease, redactor, output=output)
                reports = Successes([lease.job_id], [lease.fence], [0], [job.ran], [encoded])
                finished = await attempts.finish_succeeded(connection, lease.worker_id, reports)
                await _ended(connection, lease, job, finished=finished)
            except (WorkerGone, LeaseLost) as error:
                late = _Late(_SUCCESS, None, output)
                return await self._settle(connection, lease, late, refusal=error)
            return JobState.SUCCEEDED

    async def fail(
        self, lease: Lease, failure: Failure, output: ReportedOutput = NO_OUTPUT
    ) -> JobState:
        async with self.leases.connected() as connection:
            try:
                return await self.end_failed(connection, lease, failure, output=output)
            except (WorkerGone, LeaseLost) as error:
                late = _Late(_FAILURE, failure.error, output)
                return await self._settle(connection, lease, late, refusal=error)

    async def cancel(
        self, lease: Lease, reason: str, output: ReportedOutput = NO_OUTPUT
    ) -> JobState:
        """The worker has stopped as it was asked to."""
        async with self.leases.connected() as connection:
            try:
                job = await self.leases.job_of(connection, lease)
                redactor = self._redactor(job)
                await _keep(connection, lease, redactor, output=output)
                shown = clean(redactor.tail(reason))
                outcome = End(JobState.CANCELED, AttemptStatus.CANCELED, shown)
                await _end(connection, lease, job, outcome=outcome)
            except (WorkerGone, LeaseLost) as error:
                late = _Late(_CANCEL, reason, output)
                return await self._settle(connection, lease, late, refusal=error)
            return JobState.CANCELED

    async def end_failed(
        self,
        connection: AsyncConnection[Any],
        lease: Lease,
        failure: Failure,
        *,
        output: ReportedOutput = NO_OUTPUT,
    ) -> JobState:
        """The same as `fail`; raises WorkerGone or LeaseLost if the lease is lost."""
        job = await self.leases.job_of(connection, lease)
        redactor = self._redactor(job)
        await _keep(connection, lease, redactor, output=output)
        outcome = _failure(job, failure._replace(error=clean(redactor.tail(failure.error))))
        await _end(connection, lease, job, outcome=outcome)
        return outcome.state if isinstance(outcome, End) else JobState.QUEUED

    # Without the lease

    async def _settle(
        self,
        connection: AsyncConnection[Any],
        lease: Lease,
        late: _Late,
        *,
        refusal: WorkerGone | LeaseLost,
    ) -> JobState:
        """What the job has become, if this was reported before. Else raises the refusal, or
        LateReport if the report was kept, for which the job must have been taken back."""
        settings = self.leases.session.settings
        await recovery.recover(
            connection, [lease.job_id], max_losses=settings.max_losses, jitter=_JITTER
        )
        past = await self.leases.past_attempt(connection, lease)
        if past is not None and past.status in late.statuses:
            return past.state
        if past is not None and past.status is AttemptStatus.LOST:
            redactor = self._redactor(past)
            error = None if late.error is None else clean(redactor.tail(late.error))
            output = _stored(lease, redactor, late.output)
            await store.keep_late_report(connection, late.statuses[0], error, output=output)
            await log_about(connection, "late_report_refused", lease.job_id)
            raise LateReport(lease.job_id) from None
        raise refusal

    def _redactor(self, job: LeasedJob | PastAttempt) -> Redactor:
        """Knows what must not be seen of the job's payload, as far as it can be read."""
        keys = key_ring(self.leases.session.settings)
        try:
            payload = read_payload(job.payload)
        except InvalidPayload:
            return NO_SECRETS  # No worker has ever got it.
        opened = keys.readable_secrets(payload, Owner(job.tenant_id, job.definition))
        return Redactor(opened.secrets | secrets_in(opened.payload, job.secret_paths))


async def _keep(
    connection: AsyncConnection[Any], lease: Lease, redactor: Redactor, *, output: ReportedOutput
) -> None:
    """Store what was printed, before the end: an attempt that is over takes no more."""
    if output != NO_OUTPUT:
        await outputs.store(connection, [_stored(lease, redactor, output)])


def _stored(lease: Lease, redactor: Redactor, output: ReportedOutput) -> Output:
    return Output(
        lease.report,
        stdout=_tail(redactor, output.stdout),
        stderr=_tail(redactor, output.stderr),
        exit_code=output.exit_code,
    )


def _tail(redactor: Redactor, text: str | None) -> str | None:
    if not text:
        return None
    tail = Tail(margin=MARGIN)
    tail.add(text)
    shown = tail.shown(redactor.tail)
    return None if shown is None else clean(shown, limit=None)


async def _end(
    connection: AsyncConnection[Any], lease: Lease, job: LeasedJob, *, outcome: Outcome
) -> None:
    facts = (lease.job_id, lease.fence, 0, job.ran)
    if isinstance(outcome, End):
        end = (outcome.state, outcome.status, outcome.error, outcome.failed)
        finished = await attempts.finish_ended(connection, lease.worker_id, [Ending(*facts, *end)])
    elif isinstance(outcome, Requeue):
        again = (outcome.status, outcome.error, outcome.failed, outcome.delay)
        finished = await attempts.finish_requeued(
            connection, lease.worker_id, [Return(*facts, *again)]
        )
    else:
        raise TypeError(f"{outcome!r} is not an unsuccessful outcome")
    await _ended(connection, lease, job, finished=finished)


async def _ended(
    connection: AsyncConnection[Any],
    lease: Lease,
    job: LeasedJob,
    *,
    finished: attempts.Finished,
) -> None:
    """Refuse who has lost the lease; else let go whoever waited for the job."""
    if finished.refused:
        raise LeaseLost(lease.job_id)
    if finished.parents:
        await flows.settle(connection, finished.parents)
    if job.limit_name is not None:
        key = LimitKey(job.limit_name, job.limit_key or "", job.tenant_id)
        await store.announce_free_place(connection, key)


def _failure(job: LeasedJob, failure: Failure) -> Outcome:
    status = AttemptStatus.TIMEOUT if job.is_overdue else AttemptStatus.FAILED
    if not failure.may_retry:
        return End(JobState.FAILED, status, failure.error, failed=1)
    trials = Trials(job.failures, job.max_attempts, job.backoff)
    outcome = of_failure(failure.error, trials, random=random.random, status=status)
    if failure.delay is not None and isinstance(outcome, Requeue):
        return Requeue(outcome.status, outcome.error, failure.delay, failed=1)
    return outcome


def _encoded_result(redactor: Redactor, result: Any) -> bytes | None:
    return None if result is None else _encoded("result", redactor.value(result), MAX_RESULT_BYTES)


def _encoded(what: str, value: Any, limit: int) -> bytes:
    if holds_nul(value):
        raise InvalidPayload("it contains a NUL byte, which PostgreSQL cannot store")
    encoded = orjson.dumps(value)
    if len(encoded) > limit:
        raise PayloadTooLarge(len(encoded), limit, what=what)
    if MARKED_NAME in encoded:
        raise InvalidPayload(f"the {what} {USES_MARK}")
    return encoded
