"""Jobs of definitions that a worker has no handler for: looked up once, then run or given up."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.stored_handlers import StoredHandlers
from mainspring.store.attempts import Report


class UnknownDefinitions:
    """Holds claimed jobs while their definitions are loaded."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        stored: StoredHandlers,
        *,
        on_known: Callable[[Sequence[ClaimedJob]], None],
        on_unknown: Callable[[ClaimedJob], None],
    ) -> None:
        self._connection, self._stored = connection, stored
        self._on_known, self._on_unknown = on_known, on_unknown
        self.waiting: list[ClaimedJob] = []
        self._arrival = asyncio.Event()

    def add(self, job: ClaimedJob) -> None:
        if self._stored.has_met(job):
            self._on_unknown(job)
            return
        self.waiting.append(job)
        self._arrival.set()

    async def run(self) -> None:
        while True:
            await self._arrival.wait()
            self._arrival.clear()
            versions = {(job.definition, job.version) for job in self.waiting}
            await self._connection.run(partial(self._stored.load, versions=versions))
            self._sort()

    def take_all(self) -> list[Report]:
        taken, self.waiting = self.waiting, []
        return [job.report for job in taken]

    def _sort(self) -> None:
        arrived, self.waiting = self.waiting, []
        known = []
        for job in arrived:
            if self._stored.get(job) is not None:
                known.append(job)
            else:
                self.add(job)  # Given up, or looked up next if it came meanwhile.
        if known:
            self._on_known(known)
