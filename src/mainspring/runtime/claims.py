"""The claimer: keeps a buffer of claimed jobs filled just ahead of the runners."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.dedicated import DedicatedConnection
from mainspring.domain.lanes import Lane, LaneBook
from mainspring.domain.pacing import Pace
from mainspring.domain.types import WorkerId
from mainspring.runtime.held import HeldJob
from mainspring.store import attempts, workers
from mainspring.store.attempts import Report

_LARGEST_BATCH = 1000
_SATURATED_AFTER = 0.2
_STALE_AFTER = 1.0


class Claimer:
    """Claims for one worker; `room` says how many jobs could start at once right now."""

    def __init__(
        self,
        connection: DedicatedConnection,
        *,
        queues: tuple[str, ...],
        poll_seconds: float,
        prefetch: int,
        room: Callable[[], int],
        on_claimed: Callable[[], None],
        on_rest: Callable[[], None],
    ) -> None:
        self.worker_id = WorkerId(0)
        self.buffer: deque[HeldJob] = deque()
        self.pace = Pace(prefetch)
        self.is_paused = False
        self._connection = connection
        self._queues = queues
        self._poll_seconds = poll_seconds
        self._room = room
        self._on_claimed = on_claimed
        self._on_rest = on_rest
        self._lanes = LaneBook()
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()
        self.wants_wake = True
        self._busy_since: float | None = None
        self._has_swept = False
        self._late: list[HeldJob] = []  # Claimed by a statement that was under way at the pause.

    def wake(self) -> None:
        """Look now: there may be new work."""
        self._wake.set()

    def made_room(self) -> None:
        """Runners have finished something."""
        self._has_room.set()

    async def run(self) -> None:
        while True:
            wanted = self._wanted()
            if not wanted:
                self._has_room.clear()
                if not self._wanted():
                    await self._has_room.wait()
                continue
            self._wake.clear()
            claimed = await self._claim(wanted)
            if claimed == wanted:
                await self._stay_busy()
            else:
                await self._rest()

    def _wanted(self) -> int:
        """How many to claim: nothing until the buffer is half empty, so batches stay large."""
        if self.is_paused:
            return 0
        ahead = self.pace.ahead()
        free = max(self._room(), 0)
        if len(self.buffer) > ahead // 2 and len(self.buffer) >= free:
            return 0
        return max(0, min(_LARGEST_BATCH, free + ahead - len(self.buffer)))

    async def _claim(self, wanted: int) -> int:
        """A busy worker looks below its marks first, so that old work is not passed over; an
        idle one last, so that a lone job starts after a single statement."""
        is_busy = self._busy_since is not None
        self._has_swept = False
        if is_busy or not self._lanes.marks:
            await self._sweep_if_due(is_busy=is_busy)
            return await self._claim_known(wanted)
        claimed = await self._claim_known(wanted)
        if claimed < wanted and await self._sweep_if_due(is_busy=False):
            claimed += await self._claim_known(wanted - claimed)
        return claimed

    async def _sweep_if_due(self, *, is_busy: bool) -> bool:
        """Whether a sweep was made and found something ready."""
        started = time.monotonic()
        if not self._lanes.is_sweep_due(started, is_busy=is_busy):
            return False

        async def discover(connection: AsyncConnection[Any]) -> list[tuple[Lane, int]]:
            nonlocal started
            started = time.monotonic()  # Waiting for the database to come back is no cost.
            return await attempts.discover(connection, self._queues)

        found = await self._connection.run(discover)
        now = time.monotonic()
        self._lanes.swept(found, now=now, cost=now - started)
        self._has_swept = True
        return bool(found)

    async def _claim_known(self, wanted: int) -> int:
        lanes = self._lanes.in_order()
        if not lanes:
            return 0
        worker_id = self.worker_id

        async def claim(connection: AsyncConnection[Any]) -> list[tuple[Any, ...]]:
            return await attempts.claim(connection, worker_id, lanes, limit=wanted)

        rows = await self._connection.run(claim)
        if worker_id != self.worker_id:
            return 0  # The lease was lost meanwhile; whoever recovers it takes these back.
        self._take(rows)
        return len(rows)

    def _take(self, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        now = time.monotonic()
        jobs = [HeldJob(row, self.worker_id, now) for row in rows]
        if len(jobs) > 1:
            jobs.sort(key=_claim_order)
        for job in _last_of_each_lane(jobs):
            self._lanes.claimed(Lane(job.priority, job.tenant_id, job.queue), job.id)
        if self.is_paused:
            self._late.extend(jobs)
            return
        self.buffer.extend(jobs)
        self._on_claimed()

    async def _stay_busy(self) -> None:
        now = time.monotonic()
        self._busy_since = self._busy_since or now
        if self.wants_wake and now - self._busy_since > _SATURATED_AFTER:
            await self._set_wants_wake(wants_wake=False)

    async def _rest(self) -> None:
        was_busy = self._busy_since is not None
        self._busy_since = None
        if not self.wants_wake:
            await self._set_wants_wake(wants_wake=True)
            self._on_rest()
            return  # Look once more: what came meanwhile was not notified.
        if was_busy:
            return
        pause = self._poll_seconds * random.uniform(0.75, 1.25)  # noqa: S311 - only jitter
        if not self._has_swept:
            pause = min(pause, self._lanes.until_sweep(time.monotonic()))
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _set_wants_wake(self, *, wants_wake: bool) -> None:
        async def tell(connection: AsyncConnection[Any]) -> None:
            await workers.set_wants_wake(connection, self.worker_id, wants_wake=wants_wake)

        await self._connection.run(tell)
        self.wants_wake = wants_wake

    def take_stale(self) -> list[Report]:
        """Empty the buffer if its jobs have waited too long behind slow ones."""
        if not self.buffer or time.monotonic() - self.buffer[0].claimed_at < _STALE_AFTER:
            return []
        self.pace.stall()
        return self.take_all()

    def take_all(self) -> list[Report]:
        """Empty the buffer."""
        reports = [job.report for job in (*self.buffer, *self._late)]
        self.buffer.clear()
        self._late.clear()
        return reports

    def start_over(self, worker_id: WorkerId) -> None:
        """Go on under a new lease, with nothing claimed."""
        self.worker_id = worker_id
        self.buffer.clear()
        self._lanes = LaneBook()
        self.wants_wake = True
        self.wake()


def _claim_order(job: HeldJob) -> tuple[int, int]:
    return job.priority, job.id


def _last_of_each_lane(jobs: list[HeldJob]) -> list[HeldJob]:
    return list({(job.priority, job.tenant_id, job.queue): job for job in jobs}.values())


async def hand_back_unknown(
    connection: AsyncConnection[Any], worker_id: WorkerId, known: set[int]
) -> None:
    """Return jobs that were claimed by a statement whose answer never arrived."""
    unknown = await attempts.held_by(connection, worker_id, known)
    if unknown:
        queues = await attempts.hand_back(connection, unknown)
        telemetry.event("unheard_claims_returned", jobs=len(unknown), queues=sorted(queues))
