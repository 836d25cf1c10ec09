"""Results on their way to the database.

Runners hand over what became of a job and go on; one task sends what has gathered, in one
statement a kind, on a connection of its own. While a batch is on its way the next gathers,
so batches are as large as the database is slow, and a lone result leaves at once. While more jobs
are at hand, batches leave a few milliseconds apart: a statement costs more than a small job.

A batch that the database refuses is halved, down to the one report that it cannot store
(`refused_reports.py`); the others are stored.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.jobs.outcomes import End, Requeue, clean
from mainspring.domain.limits import LimitKey
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.domain.sqlstates import is_worth_retrying
from mainspring.domain.types import AttemptStatus, JobId, WorkerId
from mainspring.runtime.loop import Rounds
from mainspring.runtime.worker.buffer import Buffer, lane_of
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.refused_reports import (
    RefusedReport,
    Reports,
    Statement,
    Unsent,
    is_locked,
    is_retried,
    leases_of,
    put_off,
    send_in_halves,
)
from mainspring.runtime.worker.report_slices import LARGEST_BATCH, slices
from mainspring.runtime.worker.results import encode_answer
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.services.job_names import log_about
from mainspring.store import attempts, outputs
from mainspring.store.attempts import Ending, Finished, Report, Return, Successes
from mainspring.store.outputs import Output

_LATE_SECONDS = 60.0
_APART_SECONDS = 0.01

T = TypeVar("T")


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
        self.rounds = Rounds("report loop")
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
        self._ready: dict[Lane, list[int]] = {}
        self._has_waits = False
        self._in_flight_ids: set[int] = set()
        self._late: dict[Report, tuple[AttemptStatus, float]] = {}
        self._redactors: dict[int, Redactor] = {}
        self._unsent = Unsent()
        self._has_reports = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Reports not yet committed."""
        return len(self._successes) + len(self._endings) + len(self._returns) + self.in_flight

    def succeed(self, job: ClaimedJob, ran: float, result: bytes | None) -> None:
        """The hot path: five appends, a comparison and a flag; `ran` is in seconds."""
        reports = self._successes
        reports.job_ids.append(job.id)
        reports.fences.append(job.fence)
        reports.waits.append(int((job.began_at - job.claimed_at) * 1e6))
        reports.runs.append(int(ran * 1e6))
        reports.results.append(result)
        if (progress := job.progress) is not job.stored_progress and progress is not None:
            reports.progress[job.id] = progress
        if job.limit_name is not None or job.redactor is not NO_SECRETS:
            self._note(job)
        self._has_reports.set()

    def add_output(self, job: ClaimedJob) -> None:
        """Its output is stored before whatever is reported of it next."""
        if (output := job.output.take(job.report)) is not None:
            self._outputs.append(output)
            self._has_reports.set()

    def end(self, job: ClaimedJob, outcome: End) -> None:
        waited, ran = job.timings()
        self._note(job)
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
                progress=job.unstored_progress,
                result=encode_answer(outcome.answer),
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
        self._note(job)
        if outcome.delay or job.limit_name is not None:
            self._has_waits = True
        else:
            self._ready.setdefault(lane_of(job), []).append(job.id)
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
        waiting |= {r.job_id for r in self._returns} | self._unsent.job_ids()
        return waiting | self._in_flight_ids

    async def run(self) -> None:
        sent_at = -math.inf
        while True:
            self.rounds.passed(math.inf)
            await self._has_reports.wait()
            self.rounds.passed(_APART_SECONDS)
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
        unsent = [reports for _, reports in self._unsent.take_all()]
        for reports in (self._endings, self._returns, *unsent):
            late += leases_of(reports)
        self._successes, self._endings, self._returns = Successes(), [], []
        self._outputs, self._ready = [], {}
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
        for batch in slices(successes):
            await self._finish(worker_id, batch, attempts.finish_succeeded)
        for part in slices(endings):
            await self._finish(worker_id, part, attempts.finish_ended)
        if returns:
            ready, self._ready = self._ready, {}
            has_waits, self._has_waits = self._has_waits, False
            await self._finish(worker_id, returns, attempts.finish_requeued)
            self._announce_requeued(ready, has_waits=has_waits)
        for job_id in self._in_flight_ids & self._redactors.keys():
            del self._redactors[job_id]
        sent, self.in_flight, self._in_flight_ids = self.in_flight, 0, set()
        self._events.reports_sent(sent)
        self._announce_committed()

    async def _store_outputs(self) -> None:
        found, self._outputs = self._outputs, []
        if not found:
            return

        async def store(part: list[Output]) -> None:
            await self._connection.run(
                lambda connection: outputs.store(connection, part), is_passing=is_worth_retrying
            )

        async def skip(part: list[Output], error: psycopg.Error) -> None:
            # How jobs ended matters more.
            await self._log_about("output_refused", part[0].report, error=str(error))

        await send_in_halves(found, store, skip)

    def _note(self, job: ClaimedJob) -> None:
        self._note_place(job)
        if job.redactor is not NO_SECRETS:
            self._redactors[job.id] = job.redactor

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

    def _announce_requeued(self, ready: Mapping[Lane, Sequence[int]], *, has_waits: bool) -> None:
        """Idle workers were notified of what is ready; ours may be busy far behind it."""
        for lane, job_ids in ready.items():
            self._events.jobs_ready(lane, job_ids)
        if has_waits:
            self._events.notifications_missed()

    async def _finish(self, worker_id: WorkerId, reports: Reports, statement: Statement) -> None:
        send = partial(self._send, worker_id, statement)
        await send_in_halves(
            reports, send, partial(self._set_aside, worker_id, statement=statement)
        )

    async def _send(self, worker_id: WorkerId, statement: Statement, reports: Reports) -> None:
        async def finish(connection: AsyncConnection[Any]) -> Finished:
            if worker_id != self.worker_id:
                return Finished([lease for lease, _ in leases_of(reports)], [])
            return await statement(connection, worker_id, reports)

        is_passing = partial(is_retried, is_alone=len(reports) == 1)
        finished = await self._connection.run(finish, is_passing=is_passing)
        self._parents.update(finished.parents)
        if finished.refused:
            refused = set(finished.refused)
            await self.record_late([late for late in leases_of(reports) if late[0] in refused])

    async def _set_aside(
        self, worker_id: WorkerId, reports: Reports, error: psycopg.Error, *, statement: Statement
    ) -> None:
        redactor = self._redactors.get(leases_of(reports)[0][0].job_id, NO_SECRETS)
        refused = RefusedReport(reports, error, redactor)
        await self._log_about("report_refused", refused.lease, error=refused.problem)
        if is_locked(error):
            self._unsent.add(statement, reports)
            return
        if refused.is_at_fault and await self._replace(
            worker_id, [refused.ending()], attempts.finish_ended
        ):
            return
        again = [refused.requeue()]
        if await self._replace(worker_id, again, attempts.finish_requeued):
            self._events.notifications_missed()
        else:
            self._unsent.add(attempts.finish_requeued, again)

    async def put_off(self, report: Report, problem: str) -> None:
        """Queue a job that could not be handed back again after a while, with the reason."""
        await self._log_about("report_refused", report, error=problem)
        again = [put_off(report, clean(problem))]
        if not await self._replace(self.worker_id, again, attempts.finish_requeued):
            self._unsent.add(attempts.finish_requeued, again)

    async def _replace(self, worker_id: WorkerId, reports: Reports, statement: Statement) -> bool:
        """Whether the database accepts this instead."""
        try:
            await self._send(worker_id, statement, reports)
        except psycopg.Error:
            return False
        return True

    async def _log_about(self, event: str, report: Report, *, error: str) -> None:
        facts = {"worker": self.worker_id, "error": error}
        await self._connection.run(
            lambda c: log_about(c, event, report.job_id, **facts), is_passing=is_worth_retrying
        )

    async def _try(
        self, what: str, action: Callable[[AsyncConnection[Any]], Awaitable[T]]
    ) -> T | None:
        """Do what jobs can do without: an error must not hold up their reports."""
        try:
            return await self._connection.run(action, is_passing=is_worth_retrying)
        except psycopg.Error as error:
            telemetry.event("loop_failed", loop=what, error=error)
            return None

    async def record_late(self, reports: Sequence[tuple[Report, AttemptStatus]]) -> None:
        """Keep what was reported too late; a report repeated after a lost answer is not late."""
        self._keep_late(reports)
        await self.repeat_late()

    async def repeat_late(self) -> None:
        """Record what is late, as soon as somebody has taken the jobs back; and try again what
        could not be stored at all."""
        for statement, unsent in self._unsent.take_due():
            await self._finish(self.worker_id, unsent, statement)
        forgotten = time.monotonic() - _LATE_SECONDS
        late = {r: (status, at) for r, (status, at) in self._late.items() if at > forgotten}
        self._late = {}
        if not late:
            return

        async def record(connection: AsyncConnection[Any]) -> tuple[list[JobId], set[Report]]:
            reports = [(report, status) for report, (status, _) in late.items()]
            return await attempts.record_late_reports(connection, reports)

        recorded, unresolved = await self._try("late reports", record) or ([], set())
        if recorded:
            facts = {"count": len(recorded), "job_ids": telemetry.first(recorded)}
            telemetry.event("late_report_refused", worker=self.worker_id, **facts)
        self._late = {report: late[report] for report in late if report in unresolved} | self._late

    def _keep_late(self, reports: Sequence[tuple[Report, AttemptStatus]]) -> None:
        most = max(LARGEST_BATCH - len(self._late), 0)
        now = time.monotonic()
        self._late |= {report: (status, now) for report, status in reports[:most]}
