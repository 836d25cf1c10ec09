"""The runners: take claimed jobs from the buffer and run their handlers.

A task per job would cost more than a small job itself. So a runner is a task that runs one
job after another in itself. While it is suspended in a handler the event loop gets to a
starter, which adds a runner if jobs wait: jobs that never suspend are done by one runner in a
row, jobs that wait for something get as many runners as the concurrency allows.

    buffer ─▶ runner ── await handler ──▶ report ─▶ next job
                 └ suspended? the starter adds another, twice as many each time

A handler that changes context variables would leak them into the next job of its runner;
such a runner ends after that job and a fresh one takes over.
"""

import asyncio
import contextvars
import random
import time
from collections.abc import Mapping
from typing import Any, assert_never

from mainspring import telemetry
from mainspring.domain.claiming import probation
from mainspring.domain.definitions import Handler
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.jobs.outcomes import (
    AttemptFailed,
    Cancel,
    End,
    Fail,
    Outcome,
    PutOff,
    Requeue,
    StopReason,
    Succeed,
    Trials,
    of_answer,
    of_failure,
    of_loss,
    of_stop,
)
from mainspring.domain.secrets.paths import ENCRYPTION_MARK
from mainspring.domain.types import AttemptStatus, ExecutionMode, JobState
from mainspring.runtime.executors.processes import ChildStopped, Committed, ProcessExecutor
from mainspring.runtime.executors.threads import ThreadExecutor
from mainspring.runtime.worker.buffer import Buffer
from mainspring.runtime.worker.capacity import Capacity
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.environment import ExecutionEnvironment
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.failures import describe
from mainspring.runtime.worker.handler_calls import Calls
from mainspring.runtime.worker.job_log import JobLog
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.results import UnstorableResult, encode_result
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.stored_handlers import StoredHandlers
from mainspring.runtime.worker.suspects import PUT_BACK, SuspectDied, Suspects
from mainspring.runtime.worker.unknown_definitions import UnknownDefinitions
from mainspring.services.secrets import KeyRing

# What a runner starts before notifications are read: a thousand small jobs take two milliseconds,
# and a tenant that has just come would wait for all of them.
_SLICE, _SLICE_JOBS = 0.002, 100


class Runners:
    """Runs the jobs of one worker, up to `concurrency` at a time."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        stored: StoredHandlers,
        *,
        unknown: UnknownDefinitions,
        buffer: Buffer,
        reporter: Reporter,
        environment: ExecutionEnvironment,
        concurrency: int,
        max_losses: int,
        processes: ProcessExecutor,
        suspect_processes: ProcessExecutor,
        keys: KeyRing,
        speculation: SpeculativeStarts,
        events: WorkerEvents,
        log: JobLog,
    ) -> None:
        self._log = log
        self.running: dict[int, ClaimedJob] = {}
        self._capacity = Capacity(concurrency, self.running, self._has_more_capacity)
        self._max_losses = max_losses
        self.threads = ThreadExecutor(concurrency)
        self._zombies: set[ClaimedJob] = set()
        self._handlers = handlers
        self._stored = stored
        self._unknown = unknown
        self._buffer = buffer.jobs
        self._reporter = reporter
        self._calls = Calls(
            environment,
            threads=self.threads,
            processes=processes,
            suspects=Suspects(
                suspect_processes,
                self._capacity,
                source=environment.async_calls,
                max_losses=max_losses,
            ),
            keys=keys,
            speculation=speculation,
            events=events,
        )
        self._events = events
        self._tasks: set[asyncio.Task[None]] = set()
        self._yielding = 0
        self._is_starter_scheduled = False
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self) -> None:
        """There are jobs in the buffer: make sure that someone takes them."""
        if not self._is_starter_scheduled:
            self._is_starter_scheduled = True
            asyncio.get_running_loop().call_soon(self._start_more)

    def capacity(self) -> int:
        """How many more jobs could run right now."""
        return self._capacity.most - len(self.running) - self.threads.abandoned - len(self._zombies)

    def _has_more_capacity(self) -> None:
        self.start()
        self._events.capacity_freed()

    async def drained(self) -> None:
        """Wait until no job is running or waiting in the buffer."""
        await self._idle.wait()

    def _start_more(self) -> None:
        self._is_starter_scheduled = False
        if not self._buffer or self._yielding:
            return
        wanted = min(len(self._buffer), self.capacity(), max(1, len(self._tasks)))
        for _ in range(wanted):
            task = asyncio.create_task(self._run_jobs(), context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if wanted > 0:
            self._idle.clear()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.event("loop_failed", loop="runner", error=error)
        if self._buffer:
            self.start()
        elif not self._tasks:
            self._idle.set()

    async def _run_jobs(self) -> None:  # noqa: C901, PLR0912 - the hot path
        task = asyncio.current_task()
        fresh = contextvars.copy_context()
        slice_ends, slice_left = time.monotonic() + _SLICE, _SLICE_JOBS
        buffer, handlers, running = self._buffer, self._handlers, self.running
        capacity, logs_all = self._capacity, self._log.logs_all
        while buffer and len(running) < capacity.most:
            try:
                job = buffer.popleft()
            except IndexError:  # The thread that keeps the lease has just withdrawn it.
                break
            handler = handlers.get(job.definition) or self._stored.get(job)
            if handler is None:
                self._unknown.add(job)
                continue
            job.handler = handler
            job.task = task
            job.began_at = now = time.monotonic()
            job.expires_at = now + handler.definition.timeout.total_seconds()
            running[job.id] = job
            if logs_all:
                self._log.started(job)
            if buffer and not self._is_starter_scheduled:
                self.start()
            try:
                needs_nothing = job.extras is None and ENCRYPTION_MARK not in job.payload_text
                payload = job.payload() if handler.is_simple and needs_nothing else None
                schema = handler.schema
                if payload is not None and (
                    schema is None
                    or (len(job.payload_text) <= schema.quick_length and schema.fits(payload))
                ):
                    # The hot path: no context, no executor, nothing to clean up.
                    answer = await handler.function(**payload)
                else:
                    answer = await self._calls.call(job, handler)
                now = time.monotonic()
                if answer is None and job.transaction is None and job.stop is None:
                    self._reporter.succeed(job, now - job.began_at, None)
                else:
                    await self._answered(job, answer)
            except BaseException as error:  # noqa: BLE001 - a handler may raise anything
                await self._failed(job, handler, error)
            if running.get(job.id) is job:  # After an abandoned attempt it may be the next one.
                del running[job.id]
            if self._zombies:
                self._zombies.discard(job)
            slice_left -= 1
            if now > slice_ends or not slice_left:
                await self._yield()
                slice_ends, slice_left = time.monotonic() + _SLICE, _SLICE_JOBS
            if contextvars.copy_context() != fresh:
                break
        self._events.capacity_freed()

    def stop_job(self, job: ClaimedJob, reason: StopReason, note: str) -> None:
        """Ask a running handler to stop: an async one is canceled, others see the flag."""
        if job.stop is not None and reason is not StopReason.LEASE_LOST:
            return
        job.stop, job.stop_note = reason, note
        job.forced_at = 0.0
        if job.handler.mode in (ExecutionMode.ASYNC, ExecutionMode.STORED):
            _cancel_task(job)
        elif job.interrupt is not None and job.handler.mode is ExecutionMode.PROCESS:
            job.interrupt()

    def force(self, job: ClaimedJob) -> None:
        """End a handler that did not stop when asked."""
        if _is_thread(job) and job.interrupt is not None:
            job.interrupt()
        else:
            _cancel_task(job)

    async def interrupt_all(self, note: str) -> None:
        """End what still runs, because the worker leaves."""
        for job in list(self.running.values()):
            self.stop_job(job, StopReason.SHUTDOWN, note)
            self.force(job)
        try:
            async with asyncio.timeout(1):
                await self.drained()
        except TimeoutError:
            for job in list(self.running.values()):
                self.abandon(job)

    def abandon(self, job: ClaimedJob) -> None:
        """Report a handler that cannot be ended, and let it be."""
        trials = _trials(job, job.handler)
        reason = job.stop or StopReason.CANCEL
        if (outcome := of_stop(reason, job.stop_note, trials, random=random.random)) is not None:
            self._report(job, outcome)
        job.log_event("handler_abandoned")
        self._let_be(job)

    def disown(self, job: ClaimedJob) -> None:
        """End a handler whose claim came to nothing, and report nothing of it."""
        self.stop_job(job, StopReason.LEASE_LOST, "the claim was not committed")
        self._let_be(job)

    def _let_be(self, job: ClaimedJob) -> None:
        job.stop = StopReason.ABANDONED
        if self.running.pop(job.id, None) is not None and not _is_thread(job):
            self._zombies.add(job)
        _cancel_task(job)

    async def _yield(self) -> None:
        self._events.capacity_freed()
        self._yielding += 1
        try:
            await asyncio.sleep(0)
        finally:
            self._yielding -= 1

    async def _answered(self, job: ClaimedJob, answer: Any) -> None:
        if isinstance(answer, Committed):
            # A process of its own does not say whether others wait for the job.
            own = job.transaction
            self._reporter.committed(job, is_parent=own is None or own.is_parent)
            return
        if answer is PUT_BACK or job.stop is StopReason.ABANDONED:
            return
        if job.stop is StopReason.LEASE_LOST:
            await self._roll_back(job, LeaseLost(job.id))
            await self._reporter.record_late([(job.report, AttemptStatus.SUCCEEDED)])
            return
        outcome = of_answer(_shown(job, answer))
        if not isinstance(outcome, Succeed):
            await self._roll_back(job, asyncio.CancelledError())
            self._report(job, outcome)
            return
        result = encode_result(outcome.result, job.redactor)
        if job.transaction is not None and job.transaction.is_open:
            await job.transaction.acommit(job.timings(), result, job.unstored_progress)
            self._reporter.committed(job, is_parent=job.transaction.is_parent)
        else:
            self._reporter.succeed(job, time.monotonic() - job.began_at, result)

    async def _failed(self, job: ClaimedJob, handler: Handler, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and job.task is not None:
            if job.stop is None and job.task.cancelling():
                raise error  # Not the job but the runner itself was canceled.
            while job.task.uncancel():
                pass
        await self._roll_back(job, error)
        if isinstance(error, LeaseLost) or job.stop is StopReason.LEASE_LOST:
            await self._reporter.record_late([(job.report, AttemptStatus.CANCELED)])
            return
        if (outcome := self._outcome_of(job, handler, error)) is not None:
            self._report(job, outcome)

    def _outcome_of(
        self, job: ClaimedJob, handler: Handler, error: BaseException
    ) -> Outcome | None:
        trials = _trials(job, handler)
        if job.stop is not None:
            return of_stop(job.stop, job.stop_note, trials, random=random.random)
        match error:
            case SuspectDied() if job.runs_once:
                return of_loss(f"the job's process {error.how}")
            case SuspectDied():
                losses, most = job.losses, self._max_losses
                return probation.of_death(error.how, losses, most, random=random.random)
            case ChildStopped():
                return of_stop(StopReason.SHUTDOWN, str(error), trials, random=random.random)
            case UnstorableResult() | UnreadableSecret():
                return End(JobState.FAILED, AttemptStatus.FAILED, str(error), failed=1)
            case _:
                answer = error.answer if isinstance(error, AttemptFailed) else None
                words = describe(error, job.redactor)
                return of_failure(words, trials, random=random.random, answer=answer)

    async def _roll_back(self, job: ClaimedJob, error: BaseException) -> None:
        transaction = job.transaction
        if transaction is None or not transaction.is_open:
            return
        if transaction.is_async:
            await transaction.aroll_back(error)
        else:
            await asyncio.to_thread(transaction.roll_back, error)

    def _report(self, job: ClaimedJob, outcome: Outcome) -> None:
        match outcome:
            case Succeed():
                self._reporter.succeed(job, time.monotonic() - job.began_at, None)
            case End():
                self._log.ended(job, outcome)
                self._reporter.end(job, outcome)
            case Requeue():
                self._log.requeued(job, outcome)
                self._reporter.requeue(job, outcome)
            case _:
                assert_never(outcome)


def _trials(job: ClaimedJob, handler: Handler) -> Trials:
    return Trials(
        job.failures, job.max_attempts, handler.definition.backoff, runs_once=job.runs_once
    )


def _cancel_task(job: ClaimedJob) -> None:
    if job.task is not None:
        job.task.cancel()


def _is_thread(job: ClaimedJob) -> bool:
    return job.handler.mode is ExecutionMode.THREAD


def _shown(job: ClaimedJob, answer: object) -> object:
    """The answer with the words that people will see; a result is redacted as JSON."""
    match answer:
        case Fail(reason):
            return Fail(job.shown(reason))
        case Cancel(reason):
            return Cancel(job.shown(reason))
        case PutOff(reason, delay):
            return PutOff(job.shown(reason), delay)
        case _:
            return answer
