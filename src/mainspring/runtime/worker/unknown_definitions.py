"""Jobs of definitions that a worker has no handler for: looked up once, then run or given up."""

import asyncio
import time
from datetime import timedelta
from functools import partial

import psycopg

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.jobs.outcomes import End, Requeue, clean
from mainspring.domain.types import AttemptStatus, JobState
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.refused_reports import said_by, send_in_halves
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.stored_handlers import StoredHandlers
from mainspring.store.attempts import Report
from mainspring.store.definitions import Version

_AGAIN_AFTER = timedelta(minutes=5)


class UnknownDefinitions:
    """Keeps claimed jobs while their definitions are loaded. Those that cannot be run here fail if
    `fails_unknown`, and else wait in `missing` to be handed back, as those of remote workers always
    do. Those whose definition cannot be read are queued again after a while, with the reason."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        stored: StoredHandlers,
        *,
        reporter: Reporter,
        fails_unknown: bool,
        events: WorkerEvents,
    ) -> None:
        self.loading: list[ClaimedJob] = []
        self.missing: list[ClaimedJob] = []
        self._connection, self._stored = connection, stored
        self._reporter, self._fails_unknown = reporter, fails_unknown
        self._events = events
        self._arrival = asyncio.Event()

    def add(self, job: ClaimedJob) -> None:
        if self._stored.has_looked_up(job):
            self._give_up(job)
            return
        self.loading.append(job)
        self._arrival.set()

    async def run(self) -> None:
        while True:
            await self._arrival.wait()
            self._arrival.clear()
            versions = {(job.definition, job.version) for job in self.loading}
            await send_in_halves(sorted(versions), self._load, self._refuse)
            self._sort()

    async def _load(self, versions: list[Version]) -> None:
        await self._connection.run(partial(self._stored.load, versions=versions))

    async def _refuse(self, versions: list[Version], error: psycopg.Error) -> None:
        """Put off the jobs of a version that cannot be read."""
        problem = clean(f"the definition could not be read: {said_by(error)}")
        refused = [job for job in self.loading if (job.definition, job.version) == versions[0]]
        self.loading = [job for job in self.loading if job not in refused]
        for job in refused:
            job.log_event("definition_unreadable", error=problem)
            job.began_at = time.monotonic()
            again = Requeue(AttemptStatus.FAILED, problem, _AGAIN_AFTER)
            self._reporter.requeue(job, again)
        self._events.capacity_freed()

    def take_missing(self) -> list[ClaimedJob]:
        taken, self.missing = self.missing, []
        return taken

    def take_all(self) -> list[Report]:
        taken, self.loading = self.loading, []
        return [job.report for job in (*self.take_missing(), *taken)]

    def _sort(self) -> None:
        arrived, self.loading = self.loading, []
        known = []
        for job in arrived:
            if self._stored.get(job) is not None:
                known.append(job)
            else:
                self.add(job)  # Given up, or looked up next if it came meanwhile.
        if known:
            self._events.definitions_loaded(known)

    def _give_up(self, job: ClaimedJob) -> None:
        if self._fails_unknown and not self._stored.is_remote(job):
            job.began_at = time.monotonic()
            note = f"no handler for {job.definition!r} in this worker (unknown_handler = fail)"
            self._reporter.end(job, End(JobState.FAILED, AttemptStatus.FAILED, note, failed=1))
        else:
            self.missing.append(job)
        self._events.capacity_freed()
