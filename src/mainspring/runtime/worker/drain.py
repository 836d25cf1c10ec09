"""A drain: a worker for tests that runs what is ready, one job after another, and leaves.

end waits ─▶ claim one ─▶ run ─▶ report ─▶ read what became of it ─▶ again, until none is ready

Jobs are claimed, run and reported by the parts a worker is made of, so what a test sees is what
production does; only the order is fixed, and nothing waits for time to pass.
"""

import asyncio
import functools
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeVar, assert_never

from psycopg import AsyncConnection

from mainspring.db.connect import for_own_statements
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.definitions import Handler, schemas_of
from mainspring.domain.errors import JobNotFound, JobUnsuccessful
from mainspring.domain.jobs.model import Job
from mainspring.domain.jobs.outcomes import Fail
from mainspring.domain.types import (
    ExecutionMode,
    JobId,
    JobState,
    TenantId,
    WaitsFor,
    WorkerId,
)
from mainspring.runtime.executors.processes import ProcessExecutor
from mainspring.runtime.maintenance import housekeeping
from mainspring.runtime.maintenance.dependencies import resolve_all
from mainspring.runtime.worker.buffer import Buffer, by_lane
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.environment import Enqueuer, WorkerEnvironment
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.job_log import JobLog
from mainspring.runtime.worker.lease import Lease, host_name, process_identity
from mainspring.runtime.worker.runners import Runners
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.stored_handlers import StoredHandlers, executors
from mainspring.runtime.worker.unknown_definitions import UnknownDefinitions
from mainspring.runtime.worker.watchdog import Watchdog
from mainspring.services.claiming import ClaimOrder
from mainspring.services.secrets import key_ring
from mainspring.settings import Settings
from mainspring.store import approvals, attempts, jobs, limits, waits, workers
from mainspring.store.workers import WorkerFacts

T = TypeVar("T")

# A debugger may hold a handler for a while, and nobody renews this lease.
_LEASE = timedelta(days=1)
_POOL_SIZE = 8
_MANY = 10_000


class Outcome(StrEnum):
    """What came of one execution."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELED = "canceled"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    UNHANDLED = "unhandled"


@dataclass(frozen=True, slots=True)
class Ran:
    """One execution; `error` is what the handler raised, or says why it was ended."""

    job: Job
    outcome: Outcome
    error: BaseException | None = None


class Drain:
    """Registered as a worker from enter to exit."""

    def __init__(
        self,
        url: str,
        handlers: Mapping[str, Handler],
        *,
        settings: Settings,
        enqueuer: Enqueuer,
        version: str,
    ) -> None:
        self._environment = WorkerEnvironment.open(
            url, enqueuer, size=_POOL_SIZE, use_pooler=settings.use_pooler
        )
        self._worker_id, self._version = WorkerId(0), version
        self._watch = _Watch()
        known = {**handlers, **housekeeping.handlers(self._environment.async_source, settings)}
        self._handlers = {key: _watched(each, self._watch) for key, each in known.items()}
        self._order = ClaimOrder()
        self._buffer = Buffer(self._order.shares)
        self._connection = ReconnectingConnection(
            for_own_statements(url),
            name="mainspring drain",
            use_pooler=settings.use_pooler,
            pins_plans=True,
        )
        lease = Lease(_LEASE.total_seconds())
        speculation, events = SpeculativeStarts(lease), WorkerEvents()
        log = JobLog(settings.log_jobs)
        self._reporter = log.reporter(
            self._connection, buffer=self._buffer, speculation=speculation, events=events
        )
        self._processes = ProcessExecutor(1, url, settings)
        self._stored = StoredHandlers(
            executors(self._environment, self._reporter, settings, url=url)
        )
        self._runners = Runners(
            self._handlers,
            self._stored,
            unknown=UnknownDefinitions(
                self._connection,
                self._stored,
                reporter=self._reporter,
                fails_unknown=False,
                events=events,
            ),
            buffer=self._buffer,
            reporter=self._reporter,
            environment=self._environment,
            concurrency=1,
            max_losses=settings.max_losses,
            processes=self._processes,
            suspect_processes=self._processes,
            keys=key_ring(settings),
            speculation=speculation,
            events=events,
            log=log,
        )
        self._watchdog = Watchdog(
            self._runners, self._connection, grace_seconds=settings.cancel_grace_seconds
        )
        self._duties: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        facts = WorkerFacts(
            name=f"drain:{os.getpid()}",
            host=host_name(),
            pid=os.getpid(),
            process_identity=process_identity(),
            queues=(),
            concurrency=1,
            version=self._version,
            schemas=schemas_of(self._handlers),
        )
        self._worker_id = await self._do(lambda c: workers.register(c, facts, _LEASE))
        self._reporter.worker_id = self._watchdog.worker_id = self._worker_id
        watching = (loop.run() for loop in self._watchdog.loops)
        for duty in (self._reporter.run(), *watching):
            self._duties.append(asyncio.create_task(duty))
        await self.end_waits()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for duty in self._duties:
            duty.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        self._runners.threads.close()
        self._processes.close()
        await self._do(lambda c: workers.remove(c, self._worker_id))
        await self._connection.close()
        await self._environment.close()

    async def run_next(
        self, queue: str | None = None, *, with_scheduled: bool = False
    ) -> Ran | None:
        """Run the job a worker would claim next; None when none is ready.

        `with_scheduled` then takes the one whose time comes first, as if it had come.
        """
        while True:
            if (job := await self._claim_next(queue)) is not None:
                return await self._run(job)
            if await self.end_waits():
                continue
            if not with_scheduled:
                return None
            if await self._do(lambda c: waits.promote_next(c, queue)):
                continue
            if not await self._do(limits.refill_buckets):
                return None

    async def run_job(self, tenant_id: TenantId, job_id: JobId) -> Ran | None:
        """Run this job; None when it is not ready, or not there (yet)."""
        found = await self._do(lambda c: jobs.get(c, tenant_id, job_id))
        if found is None or found.state is not JobState.QUEUED:
            return None
        if found.waits_for is WaitsFor.LIMIT:
            job = await self._claim_limited(found.queue, job_id)
            return await self._run(job) if job else None
        if found.waits_for is not None:
            return None
        lane = Lane(found.priority, found.tenant_id, found.queue)
        job = await self._claim_from(lane, job_id)
        if job is None or job.id == job_id:
            return await self._run(job) if job else None
        await self._do(lambda c: attempts.hand_back(c, [job.report]))
        return None

    async def is_there(self, tenant_id: TenantId, job_id: JobId) -> bool:
        return await self._do(lambda c: jobs.get(c, tenant_id, job_id)) is not None

    async def end_waits(self) -> bool:
        """Do what maintenance does; whether anything became ready."""

        async def end(connection: AsyncConnection[Any]) -> bool:
            ready = await waits.promote(connection)
            ready += await waits.release_known(
                connection, tuple(self._handlers), self._stored.kinds
            )
            await waits.expire(connection)
            await waits.settle_cancels(connection)
            await approvals.expire(connection)
            resolved = await resolve_all(connection)
            return bool(ready) or resolved > 0

        return await self._do(end)

    async def _do(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        # Once: a test is to fail when its database is gone, not to wait for it.
        return await self._connection.try_once(action)

    async def _claim_next(self, queue: str | None) -> ClaimedJob | None:
        async def claim(connection: AsyncConnection[Any]) -> Sequence[tuple[Any, ...]]:
            queues = [queue] if queue else await waits.ready_queues(connection)
            return await self._order.claim_unbuffered(connection, self._worker_id, queues, limit=1)

        return self._claimed(await self._do(claim))

    async def _claim_from(self, lane: Lane, job_id: JobId) -> ClaimedJob | None:
        """The first job of the lane from this one on."""
        marks = [(lane, job_id - 1)]
        return self._claimed(
            await self._do(lambda c: attempts.claim(c, self._worker_id, marks, limit=1))
        )

    async def _claim_limited(self, queue: str, job_id: JobId) -> ClaimedJob | None:
        """This job, if it is one of those that have a place; the others wait on."""

        async def claim(connection: AsyncConnection[Any]) -> Sequence[tuple[Any, ...]]:
            # What else is ready does not matter here, so not in the order of the others.
            rows = await ClaimOrder().claim_limited(
                connection, self._worker_id, [queue], limit=_MANY
            )
            others = [row.report for row in rows if row.job_id != job_id]
            if others:
                await attempts.hand_back(connection, others)
            return [row for row in rows if row.job_id == job_id]

        return self._claimed(await self._do(claim))

    def _claimed(self, rows: Sequence[tuple[Any, ...]]) -> ClaimedJob | None:
        return ClaimedJob(rows[0], self._worker_id, time.monotonic()) if rows else None

    async def _run(self, job: ClaimedJob) -> Ran:
        if job.definition not in self._handlers:
            await self._do(lambda c: self._stored.load(c, [(job.definition, job.version)]))
        if job.definition not in self._handlers and self._stored.get(job) is None:
            await self._do(lambda c: attempts.hand_back(c, [job.report], WaitsFor.HANDLER))
            return Ran(await self._read(job), Outcome.UNHANDLED)
        self._watch.reset()
        self._buffer.put(by_lane([job]))
        self._runners.start()
        await self._reported()
        ended = await self._read(job)
        outcome = _outcome(job, ended)
        return Ran(ended, outcome, self._error(job, ended, outcome))

    async def _reported(self) -> None:
        async def drain() -> None:
            await asyncio.sleep(0)  # The runner is started by the loop's next iteration.
            await self._runners.drained()
            await self._reporter.drained()

        drained = asyncio.create_task(drain())
        await asyncio.wait({drained, *self._duties}, return_when=asyncio.FIRST_COMPLETED)
        for duty in self._duties:
            if duty.done():
                drained.cancel()
                await duty
        await drained

    async def _read(self, job: ClaimedJob) -> Job:
        found: Job | None = await self._do(lambda c: jobs.get(c, job.tenant_id, job.id))
        if found is None:
            raise JobNotFound(job.id)
        return found

    def _error(self, job: ClaimedJob, ended: Job, outcome: Outcome) -> BaseException | None:
        if outcome not in (Outcome.FAILED, Outcome.RETRIED, Outcome.DEAD_LETTER):
            return None
        if self._watch.error is not None and job.stop is None:
            return self._watch.error
        if outcome is Outcome.FAILED and not self._watch.saw_bad_answer:
            return None
        return JobUnsuccessful(ended.id, ended.state, ended.last_error)


class _Watch:
    """What the handler of the job that runs now did."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.error: BaseException | None = None
        self.saw_bad_answer = False

    @contextmanager
    def noting(self) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.error = error
            raise

    def answered(self, answer: Any) -> Any:
        # An answer that ends in failure without being one cannot be stored.
        self.saw_bad_answer = not isinstance(answer, Fail)
        return answer


def _watched(handler: Handler, watch: _Watch) -> Handler:
    """The same handler, seen through; one in a process of its own cannot be."""
    function = handler.function

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        with watch.noting():
            return watch.answered(await function(*args, **kwargs))

    @functools.wraps(function)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        with watch.noting():
            return watch.answered(function(*args, **kwargs))

    match handler.mode:
        case ExecutionMode.ASYNC:
            return replace(handler, function=call_async)
        case ExecutionMode.THREAD:
            return replace(handler, function=call_sync)
        case ExecutionMode.PROCESS | ExecutionMode.STORED:
            return handler
        case _:
            assert_never(handler.mode)


def _outcome(job: ClaimedJob, ended: Job) -> Outcome:
    if ended.is_final:
        return Outcome(ended.state)
    return Outcome.RETRIED if ended.failures > job.failures else Outcome.SNOOZED
