"""Ends handlers that must end: timeouts, cancels, and those that do not listen.

asked to stop ─ grace ─▶ forced ─ grace ─▶ abandoned: reported, and left to itself

A timeout is a matter of the clock alone, so no loop that asks the database stands before it. What
is asked and stored, cancels, progress and output, has a loop of its own.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.jobs.outcomes import StopReason
from mainspring.domain.types import WorkerId
from mainspring.runtime.loop import Loop
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.refused_reports import is_retried, send_in_halves
from mainspring.runtime.worker.runners import Runners
from mainspring.store import attempts, outputs
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output

_TICK = 0.05
_PROGRESS_EVERY = 0.5
_CANCELS_EVERY = 5.0

_IS_PASSING = partial(is_retried, is_alone=False)

ProgressReport = tuple[Report, bytes]


class Watchdog:
    """Looks at the running jobs of one worker twenty times a second, and asks for cancels and
    stores what they have to show twice a second."""

    def __init__(
        self, runners: Runners, connection: ReconnectingConnection, *, grace_seconds: float
    ) -> None:
        self.worker_id = WorkerId(0)
        self.clock = Loop("watchdog", self._pass_clock)
        self.database = Loop("watchdog reports", self._pass_database)
        self._runners = runners
        self._connection = connection
        self._grace = grace_seconds
        self._next_cancels = 0.0
        self._stopped_at: dict[int, float] = {}

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self.clock, self.database)

    def look_for_cancels(self) -> None:
        self._next_cancels = 0.0
        self.database.wake()

    async def _pass_clock(self) -> float:
        now = time.monotonic()
        jobs = list(self._runners.running.values())
        for job in jobs:
            self._watch(job, now)
        self._stopped_at = {
            job.id: self._stopped_at[job.id] for job in jobs if job.id in self._stopped_at
        }
        return _TICK

    async def _pass_database(self) -> float:
        now = time.monotonic()
        jobs = list(self._runners.running.values())
        if jobs and now >= self._next_cancels:
            self._next_cancels = now + _CANCELS_EVERY
            await self._connection.try_once(self._request_stops)
        await self._store_progress(jobs)
        await self._store_output(jobs)
        return _PROGRESS_EVERY

    def _watch(self, job: ClaimedJob, now: float) -> None:
        if job.stop is None:
            if now >= job.expires_at:
                seconds = job.expires_at - job.began_at
                self._runners.stop_job(
                    job, StopReason.TIMEOUT, f"the handler exceeded its timeout of {seconds:g} s"
                )
                self._stopped_at[job.id] = now
            return
        since = self._stopped_at.setdefault(job.id, now)
        if now >= since + 2 * self._grace and job.forced_at:
            self._runners.abandon(job)
        elif now >= since + self._grace and not job.forced_at:
            job.forced_at = now
            self._runners.force(job)

    async def _request_stops(self, connection: AsyncConnection[Any]) -> None:
        for report, reason in await attempts.cancel_requests(connection, self.worker_id):
            job = self._runners.running.get(report.job_id)
            if job is not None and job.fence == report.fence:
                self._runners.stop_job(job, StopReason.CANCEL, reason or "canceled by request")

    async def _store_progress(self, jobs: list[ClaimedJob]) -> None:
        reports = [(job.report, sent) for job in jobs if (sent := job.unstored_progress)]
        locked: set[Report] = set()

        async def send(some: list[ProgressReport]) -> None:
            locked.update(
                await self._connection.run(
                    lambda c: attempts.report_progress(c, some), is_passing=_IS_PASSING
                )
            )

        if reports:
            await send_in_halves(reports, send, partial(_skip_progress, jobs))
        # What is locked is sent again, or stored with the end of its job; what was refused is not.
        stored = {report: sent for report, sent in reports if report not in locked}
        for job in jobs:
            job.stored_progress = stored.get(job.report, job.stored_progress)

    async def _store_output(self, jobs: list[ClaimedJob]) -> None:
        writing = [job for job in jobs if job.output is not None]
        found = [output for job in writing if (output := job.output.take(job.report))]

        async def send(some: list[Output]) -> None:
            await self._connection.run(lambda c: outputs.store(c, some), is_passing=_IS_PASSING)

        if found:
            await send_in_halves(found, send, partial(_skip_output, jobs))


async def _skip_progress(
    jobs: Sequence[ClaimedJob], reports: list[ProgressReport], error: psycopg.Error
) -> None:
    _log_refused("progress_refused", jobs, reports[0][0], error=error)


async def _skip_output(
    jobs: Sequence[ClaimedJob], found: list[Output], error: psycopg.Error
) -> None:
    _log_refused("output_refused", jobs, found[0].report, error=error)


def _log_refused(
    event: str, jobs: Sequence[ClaimedJob], report: Report, *, error: psycopg.Error
) -> None:
    for job in jobs:
        if job.report == report:
            job.log_event(event, error=str(error))
