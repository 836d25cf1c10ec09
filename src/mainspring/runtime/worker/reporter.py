"""Results on their way to the database.

Runners hand over what became of a job and go on; one task sends what has gathered, in one
statement a kind, on a connection of its own. While a batch is on its way the next gathers,
so batches are as large as the database is slow, and a lone result leaves at once. While more jobs
are at hand, batches leave a few milliseconds apart: a statement costs more than a small job.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.jobs.outcomes import End, Requeue, clean
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import AttemptStatus, JobId, JobState, WorkerId
from mainspring.runtime.worker.buffer import Buffer
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.store import attempts, outputs, workers
from mainspring.store.attempts import Ending, Finished, Report, Return, Successes
from mainspring.store.outputs import Output

_LARGEST_BATCH = 2000
_LATE_SECONDS = 60.0
_APART_SECONDS = 0.01


class Reporter:
    """Collects reports of one worker and sends them in batches."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        *,
        buffer: Buffer,
        speculation: SpeculativeStarts,
        events: WorkerEvents,
    ) -> None:
        self.worker_id = WorkerId(0)
        self.in_flight = 0
        self._connection = connection
        self._buffer = buffer
        self._speculation = speculation
        self._events = events
        self._freed_places: list[LimitKey] = []
        self._parents: set[JobId] = set()
        self._successes = Successes()
        self._endings: list[Ending] = []
        self._returns: list[Return] = []
        self._outputs: list[Output] = []
        self._ready_queues: set[str] = set()
        self._in_flight_ids: set[int] = set()
        self._late: dict[Report, tuple[AttemptStatus, float]] = {}
        self._has_reports = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Reports not yet committed."""
        return len(self._successes) + len(self._endings) + len(self._returns) + self.in_flight

    def succeed(self, job: ClaimedJob, ran: float, result: bytes | None) -> None:
        """The hot path: five appends and a flag; `ran` is in seconds."""
        reports = self._successes
        reports.job_ids.append(job.id)
        reports.fences.append(job.fence)
        reports.waits.append(int((job.began_at - job.claimed_at) * 1e6))
        reports.runs.append(int(ran * 1e6))
        reports.results.append(result)
        if job.limit_name is not None:
            self._note_place(job)
        self._has_reports.set()

    def add_output(self, job: ClaimedJob) -> None:
        """Its output is stored before whatever is reported of it next."""
        if (output := job.output.take(job.report)) is not None:
            self._outputs.append(output)
            self._has_reports.set()

    def end(self, job: ClaimedJob, outcome: End) -> None:
        waited, ran = job.timings()
        self._note_place(job)
        self._endings.append(
            Ending(
                job.id,
                job.fence,
                waited,
                ran,
                state=outcome.state,
                status=outcome.status,
                error=outcome.error,
                failed=outcome.failed,
                lost=outcome.lost,
            )
        )
        self._has_reports.set()

    def committed(self, job: ClaimedJob, *, is_parent: bool) -> None:
        """A job's own transaction has reported its success."""
        self._note_place(job)
        if is_parent:
            self._parents.add(job.id)
        self._announce_committed()

    def requeue(self, job: ClaimedJob, outcome: Requeue) -> None:
        waited, ran = job.timings()
        self._note_place(job)
        if not outcome.delay:
            self._ready_queues.add(job.queue)
        self._returns.append(
            Return(
                job.id,
                job.fence,
                waited,
                ran,
                status=outcome.status,
                error=outcome.error,
                failed=outcome.failed,
                delay=outcome.delay,
                lost=outcome.lost,
            )
        )
        self._has_reports.set()

    def job_ids(self) -> set[int]:
        """The jobs whose reports are not yet committed."""
        waiting = {*self._successes.job_ids, *(e.job_id for e in self._endings)}
        return waiting | {r.job_id for r in self._returns} | self._in_flight_ids

    async def run(self) -> None:
        sent_at = -math.inf
        while True:
            await self._has_reports.wait()
            self._idle.clear()
            if (pause := sent_at + _APART_SECONDS - time.monotonic()) > 0 and self._buffer:
                await asyncio.sleep(pause)
            sent_at = time.monotonic()
            self._has_reports.clear()
            await self._flush()
            if not self._has_reports.is_set():
                self._idle.set()

    async def drained(self) -> None:
        """Wait until everything handed over so far is committed."""
        while len(self):
            await self._idle.wait()
            await asyncio.sleep(0)

    def forget(self) -> None:
        """Send nothing more of what has gathered, after the lease was lost: it is late."""
        late = [(report, AttemptStatus.SUCCEEDED) for report in self._successes.leases()]
        late += [(Report(e.job_id, e.fence), e.status) for e in self._endings]
        late += [(Report(r.job_id, r.fence), r.status) for r in self._returns]
        self._successes, self._endings, self._returns = Successes(), [], []
        self._outputs = []
        self._keep_late(late)
        self.worker_id = WorkerId(0)  # What is on its way is late too, however often it was tried.

    def drop(self, job_ids: AbstractSet[int]) -> None:
        """Send nothing of jobs that were never ours."""
        self._successes = self._successes.without(job_ids)
        self._endings = [ending for ending in self._endings if ending.job_id not in job_ids]
        self._returns = [each for each in self._returns if each.job_id not in job_ids]
        self._outputs = [out for out in self._outputs if out.report.job_id not in job_ids]

    async def _flush(self) -> None:
        await self._speculation.resolved()
        successes, self._successes = self._successes, Successes()
        endings, self._endings = self._endings, []
        returns, self._returns = self._returns, []
        self.in_flight = len(successes) + len(endings) + len(returns)
        self._in_flight_ids = {*successes.job_ids, *(e.job_id for e in endings)}
        self._in_flight_ids |= {r.job_id for r in returns}
        worker_id = self.worker_id
        await self._store_outputs()
        for batch in _slices(successes):
            await self._send_successes(worker_id, batch)
        if endings:
            await self._send(worker_id, endings, attempts.finish_ended)
        if returns:
            await self._send(worker_id, returns, attempts.finish_requeued)
            await self._announce_ready()
            self._events.notifications_missed()
        sent, self.in_flight, self._in_flight_ids = self.in_flight, 0, set()
        self._events.reports_sent(sent)
        self._announce_committed()

    async def _store_outputs(self) -> None:
        found, self._outputs = self._outputs, []
        if not found:
            return
        try:
            await self._connection.run(lambda connection: outputs.store(connection, found))
        except psycopg.DataError as error:
            # It was cleaned, so this should not happen; how jobs ended matters more.
            telemetry.event("loop_failed", loop="outputs", error=str(error))

    def _note_place(self, job: ClaimedJob) -> None:
        if (place := job.limit_place()) is not None:
            self._freed_places.append(place)

    def _announce_committed(self) -> None:
        """What is committed may let others go."""
        if self._freed_places:
            places, self._freed_places = self._freed_places, []
            self._events.places_freed(places)
        if self._parents:
            parents, self._parents = self._parents, set()
            self._events.parents_ended(parents)

    async def _announce_ready(self) -> None:
        if self._ready_queues:
            queues, self._ready_queues = self._ready_queues, set()
            await self._connection.run(lambda connection: workers.wake(connection, queues))

    async def _send_successes(self, worker_id: WorkerId, batch: Successes) -> None:
        async def finish(connection: AsyncConnection[Any]) -> Finished:
            if worker_id != self.worker_id:
                return Finished(list(batch.leases()), [])
            return await attempts.finish_succeeded(connection, worker_id, batch)

        try:
            refused, parents = await self._connection.run(finish)
        except psycopg.DataError as error:
            await self._send_singly(worker_id, batch, error)
            return
        self._parents.update(parents)
        await self.record_late([(report, AttemptStatus.SUCCEEDED) for report in refused])

    async def _send_singly(
        self, worker_id: WorkerId, batch: Successes, error: psycopg.DataError
    ) -> None:
        """A result that PostgreSQL cannot store must not hold up the others."""
        if len(batch) > 1:
            for single in _slices(batch, 1):
                await self._send_successes(worker_id, single)
            return
        problem = clean(f"the result could not be stored: {error.diag.message_primary}")
        job_id, fence = next(batch.leases())
        ending = Ending(
            job_id,
            fence,
            batch.waits[0],
            batch.runs[0],
            state=JobState.FAILED,
            status=AttemptStatus.FAILED,
            error=problem,
            failed=1,
        )
        await self._send(worker_id, [ending], attempts.finish_ended)

    async def _send(
        self, worker_id: WorkerId, reports: Sequence[Any], statement: Callable[..., Any]
    ) -> None:
        async def finish(connection: AsyncConnection[Any]) -> Finished:
            if worker_id != self.worker_id:
                return Finished([Report(each.job_id, each.fence) for each in reports], [])
            finished: Finished = await statement(connection, worker_id, reports)
            return finished

        finished = await self._connection.run(finish)
        self._parents.update(finished.parents)
        refused = set(finished.refused)
        await self.record_late(
            [
                (Report(report.job_id, report.fence), report.status)
                for report in reports
                if (report.job_id, report.fence) in refused
            ]
        )

    async def record_late(self, reports: Sequence[tuple[Report, AttemptStatus]]) -> None:
        """Keep what was reported too late; a report repeated after a lost answer is not late."""
        self._keep_late(reports)
        await self.repeat_late()

    async def repeat_late(self) -> None:
        """Record what is late, as soon as somebody has taken the jobs back."""
        forgotten = time.monotonic() - _LATE_SECONDS
        late = {r: (status, at) for r, (status, at) in self._late.items() if at > forgotten}
        self._late = {}
        if not late:
            return

        async def record(connection: AsyncConnection[Any]) -> tuple[int, set[Report]]:
            reports = [(report, status) for report, (status, _) in late.items()]
            return await attempts.record_late_reports(connection, reports)

        recorded, unresolved = await self._connection.run(record)
        if recorded:
            telemetry.event("late_report_refused", reports=recorded)
        self._late = {report: late[report] for report in late if report in unresolved} | self._late

    def _keep_late(self, reports: Sequence[tuple[Report, AttemptStatus]]) -> None:
        most = max(_LARGEST_BATCH - len(self._late), 0)
        now = time.monotonic()
        self._late |= {report: (status, now) for report, status in reports[:most]}


def _slices(reports: Successes, size: int = _LARGEST_BATCH) -> list[Successes]:
    if 0 < len(reports) <= size and size > 1:
        return [reports]
    return [
        Successes(
            reports.job_ids[start : start + size],
            reports.fences[start : start + size],
            reports.waits[start : start + size],
            reports.runs[start : start + size],
            reports.results[start : start + size],
        )
        for start in range(0, len(reports), size)
    ]
