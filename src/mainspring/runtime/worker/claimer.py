"""The claimer: keeps the buffer of claimed jobs filled just ahead of the runners.

Which lanes it claims from and in which order is the claim policy of `services/claiming.py`; when it
claims, and how much, is decided here.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming import lanes as domain
from mainspring.domain.claiming.fair_share import Visit
from mainspring.domain.claiming.lanes import Lane, LaneBook, lane_order
from mainspring.domain.claiming.prefetch import PrefetchRate
from mainspring.domain.types import WorkerId
from mainspring.runtime.loop import Failures, Rounds
from mainspring.runtime.maintenance.limit_grants import Grants
from mainspring.runtime.worker import sweeps
from mainspring.runtime.worker.buffer import Buffer, Claimed, by_lane, lane_of
from mainspring.runtime.worker.buffer_pauses import BufferPauses
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.lease import Lease
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.runners import Runners
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.unknown_definitions import UnknownDefinitions
from mainspring.services.claiming import ClaimOrder, Given
from mainspring.store import workers
from mainspring.store.attempts import Report

_LARGEST_BATCH = 1000
# To visit a lane costs as much as to claim a job or two, so a claim from many takes more of each.
_LARGEST_BATCH_OF_MANY, _MANY_LANES = 2000, 20
_SATURATED_AFTER = 0.2
_STALE_AFTER = 1.0
# How many jobs are claimed at once from lanes that were announced.
_NEWCOMERS = 200


class Claimer:
    """Claims for one worker."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        order: ClaimOrder,
        *,
        buffer: Buffer,
        runners: Runners,
        reporter: Reporter,
        unknown: UnknownDefinitions,
        grants: Grants,
        speculation: SpeculativeStarts,
        lease: Lease,
        events: WorkerEvents,
        queues: tuple[str, ...],
        poll_seconds: float,
        prefetch: int,
    ) -> None:
        self.worker_id = WorkerId(0)
        self.pace = PrefetchRate(prefetch)
        self.is_stopping = False
        self.wants_wake = True
        self.rounds = Rounds("claim loop")
        self.returns: list[Report] = []  # To be handed back, besides what waits for too long.
        self._connection, self._order = connection, order
        self._buffer, self._runners = buffer, runners
        self._reporter, self._unknown = reporter, unknown
        self._grants, self._speculation, self._events = grants, speculation, events
        self._lease, self._queues, self._poll_seconds = lease, queues, poll_seconds
        self._wake, self._has_capacity = asyncio.Event(), asyncio.Event()
        self._busy_since: float | None = None
        self._has_swept = False
        self._has_floors = False
        self._announced: set[Lane] = set()
        self._visiting: Sequence[Visit] = ()
        self._pauses = BufferPauses(buffer, runners)
        self._failures = Failures("claims")
        self._late: list[ClaimedJob] = []  # Claimed too late to begin: at a stop, after the lease.

    def wake(self) -> None:
        """Look now: there may be new work."""
        if self._busy_since is not None:
            self._order.lanes.hurry()
        self._wake.set()

    def lane_ready(self, announcement: str) -> None:
        """An enqueue announces a lane that looked empty while all workers were busy."""
        ready = domain.parse_ready_lane(announcement)
        if ready is None or ready.lane.queue not in self._queues or self.is_stopping:
            return
        buffered = self._buffered()
        self._order.announced(ready, buffered)
        self._announced.add(ready.lane)
        if ready.lane not in buffered and self._would_start_others(ready.lane):
            self._pauses.begin()
        self._wake.set()
        self._has_capacity.set()

    def limits_due(self) -> None:
        """Jobs that wait for limits may be able to go."""
        self._wake.set()
        self.capacity_freed()

    def jobs_ready(self, lane: Lane, job_ids: Collection[int], weight: int | None = None) -> None:
        """These jobs became ready, perhaps below the mark of their lane."""
        if lane.queue in self._queues and not self.is_stopping:
            self._order.named(lane, job_ids, weight=weight, buffered=self._buffered())
            self._wake.set()

    def jobs_announced(self, announcement: str) -> None:
        """Another worker made jobs ready."""
        if (found := domain.parse_named_jobs(announcement)) is not None:
            self.jobs_ready(*found)

    @property
    def lanes(self) -> LaneBook:
        return self._order.lanes

    @property
    def has_backlog(self) -> bool:
        """Whether more jobs are ready than could be claimed, as far as is known."""
        return self._busy_since is not None

    @property
    def _may_claim(self) -> bool:
        return not self.is_stopping and not self._lease.is_stalled

    def capacity_freed(self) -> None:
        """Runners have finished something."""
        self._has_capacity.set()

    def finished(self, count: int) -> None:
        """So many jobs are finished and reported."""
        self.pace.finished(count, time.monotonic())
        self.capacity_freed()

    def add(self, jobs: Sequence[ClaimedJob]) -> None:
        """Take back jobs whose definitions were looked up."""
        self._buffer.put(by_lane(jobs))
        self._runners.start()
        self.capacity_freed()

    async def run(self) -> None:
        while True:
            try:
                await self._pass()
                self._failures.end()
                self.rounds.passed(self._poll_seconds)
            except psycopg.Error as error:
                self.rounds.passed(pause := self._failures.note(error))
                await asyncio.sleep(pause)

    async def _pass(self) -> None:
        if self._announced:
            await self._claim_announced()
        wanted = self._wanted()
        if not wanted:
            self._has_capacity.clear()
            if not self._wanted() and not self._announced:
                self.rounds.passed(math.inf)
                await self._has_capacity.wait()
            return
        self._wake.clear()
        if await self._claim(wanted) == wanted:
            await self._stay_busy()
        else:
            await self._rest()

    def _wanted(self) -> int:
        """How many to claim: nothing until the buffer is half empty, so batches stay large."""
        if not self._may_claim:
            return 0
        ahead = self.pace.ahead()
        free = max(self._capacity() - len(self._unknown.loading), 0)
        if len(self._buffer) > ahead // 2 and len(self._buffer) >= free:
            return 0
        is_of_many = len(self._order.lanes.marks) >= _MANY_LANES
        most = _LARGEST_BATCH_OF_MANY if is_of_many else _LARGEST_BATCH
        return max(0, min(most, free + ahead - len(self._buffer)))

    def _capacity(self) -> int:
        """How many jobs could start right now; fewer while the database takes reports slowly."""
        unsent = max(0, len(self._reporter) - 2 * self.pace.most)
        return self._runners.capacity() - unsent

    def _buffered(self) -> Mapping[Lane, int]:
        """How many jobs of each lane wait to start, if only for their definition."""
        loading = self._unknown.loading
        if not loading:
            return self._buffer.counts()
        return Counter(self._buffer.counts()) + Counter(map(lane_of, loading))

    async def _claim(self, wanted: int) -> int:
        """A busy worker looks below its marks first, so that old work is not passed over; an
        idle one last, so that a lone job starts after a single statement."""
        is_busy = self._busy_since is not None
        self._has_swept = False
        if is_busy or not self._order.lanes.marks:
            await self._sweep_if_due(is_busy=is_busy)
            claimed = await self._claim_limited(wanted)
            return claimed + await self._claim_known(wanted - claimed)
        claimed = await self._claim_limited(wanted)
        claimed += await self._claim_known(wanted - claimed)
        if claimed < wanted and await self._sweep_if_due(is_busy=False):
            claimed += await self._claim_known(wanted - claimed)
        return claimed

    async def _sweep_if_due(self, *, is_busy: bool) -> bool:
        """Whether a sweep was made and found something ready."""
        lanes = self._order.lanes
        if not lanes.is_sweep_due(time.monotonic(), is_busy=is_busy):
            return False
        if not self._has_floors:
            await self._connection.run(partial(sweeps.restore, lanes=lanes, queues=self._queues))
            self._has_floors = True
        floors = lanes.floors if lanes.is_dear else None
        sweep = partial(sweeps.sweep, queues=self._queues, floors=floors)
        found, cost = await self._connection.run(sweep)
        note = self._order.swept if floors is None else self._order.swept_above
        note(found, now=time.monotonic(), cost=cost, buffered=self._buffered())
        self._has_swept = True
        return bool(found)

    async def _claim_announced(self) -> None:
        """Claim from lanes that were announced, even if there is enough to do."""
        lanes, self._announced = self._announced, set()
        # Beside what is there, but never more than twice what the worker can start soon.
        soon = max(self._capacity(), 0) + self.pace.ahead()
        wanted = min(_NEWCOMERS, 2 * soon - len(self._buffer))
        try:
            if wanted > 0 and self._may_claim:
                await self._claim_known(wanted, lanes)
        finally:
            if not self._announced:  # Else there are newcomers once more.
                self._pauses.end()

    async def _claim_limited(self, wanted: int) -> int:
        """Claim jobs that wait for limits, if any may be able to go; how many."""
        if not self._grants.is_due(has_backlog=self.has_backlog):
            return 0
        return await self._connection.run(partial(self._take_limited, limit=wanted))

    async def _take_limited(self, connection: AsyncConnection[Any], limit: int) -> int:
        worker_id, has_backlog = self.worker_id, self.has_backlog
        claimed = await self._grants.claim(
            connection, worker_id, buffered=self._buffered, limit=limit, has_backlog=has_backlog
        )
        if claimed and worker_id == self.worker_id:
            self._take(claimed)
        return sum(map(len, claimed.values()))

    async def _claim_known(self, wanted: int, lanes: Iterable[Lane] | None = None) -> int:
        return await self._order.claim(wanted, self._visit, lanes=lanes, buffered=self._buffered)

    async def _visit(self, visits: Sequence[Visit], limit: int) -> Given:
        is_alone = self._busy_since is None and not self._buffer
        claim = self._claim_speculatively if is_alone else self._claim_from
        self._visiting = visits
        try:
            return await self._connection.run(partial(claim, visits=visits, limit=limit))
        except psycopg.Error:
            if not is_alone or self._speculation.job_ids():
                raise
            # Outside of a transaction the claim gets past the job at fault.
            return await self._connection.run(partial(self._claim_from, visits=visits, limit=limit))
        finally:
            self._visiting = ()

    async def _claim_from(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> Given:
        return self._accept(await self._jobs(connection, visits, limit), visits, limit)

    async def _claim_speculatively(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> Given:
        """What comes alone begins before its claim is committed."""
        if not self._speculation.is_possible:
            return await self._claim_from(connection, visits, limit)
        async with self._speculation.transaction(connection):
            jobs = await self._jobs(connection, visits, limit)
            begin = not self.is_stopping and self._speculation.allows(jobs)
            if begin:
                self._speculation.begin(jobs)
                given = self._accept(jobs, visits, limit)
        if not begin:
            return self._accept(jobs, visits, limit)
        self._speculation.confirm()
        return given

    async def _jobs(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> list[ClaimedJob]:
        """What is claimed, in order."""
        worker_id = self.worker_id
        rows = await self._order.take(connection, worker_id, visits, limit=limit)
        if worker_id != self.worker_id:
            return []  # The lease was lost meanwhile; whoever recovers it takes these back.
        now = time.monotonic()
        jobs = [ClaimedJob(row, worker_id, now) for row in rows]
        if jobs and not self._lease.has_left():
            self._late.extend(jobs)  # Read too late to begin them; they may be someone else's.
            return []
        if len(jobs) > 1:
            jobs.sort(key=lane_order)
        return jobs

    def _accept(self, jobs: list[ClaimedJob], visits: Sequence[Visit], limit: int) -> Given:
        claimed = {visits[0][0]: jobs} if len(visits) == 1 and jobs else by_lane(jobs)
        given = self._order.note(visits, claimed, limit)
        if claimed:
            self._take(claimed)
        return given

    def _take(self, claimed: Claimed) -> None:
        if self.is_stopping:
            for jobs in claimed.values():
                self._late.extend(jobs)
        else:
            self._buffer.put(claimed)
            self._runners.start()

    def _would_start_others(self, lane: Lane) -> bool:
        """Whether jobs are here, or on their way, that have no precedence over the lane."""
        others = {*self._buffer.counts(), *(visited for visited, _ in self._visiting)} - {lane}
        return any(other.priority >= lane.priority for other in others)

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
            return  # Look once more: what came meanwhile was not notified.
        if was_busy or self._grants.is_due(has_backlog=False):
            return  # Keys that were asked in vain say nothing of those that were not asked yet.
        pause = self._poll_seconds * random.uniform(0.75, 1.25)  # noqa: S311 - only jitter
        if not self._has_swept:
            pause = min(pause, self._order.lanes.until_sweep(time.monotonic()))
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _set_wants_wake(self, *, wants_wake: bool) -> None:
        async def store(connection: AsyncConnection[Any]) -> None:
            await workers.set_wants_wake(connection, self.worker_id, wants_wake=wants_wake)

        await self._connection.run(store)
        self.wants_wake = wants_wake
        self._events.notifications_missed()

    def take_stale(self) -> list[Report]:
        """Empty the buffer if its jobs have waited too long behind slow ones."""
        claimed_at = min((job.claimed_at for job in self._buffer), default=math.inf)
        if time.monotonic() - claimed_at >= _STALE_AFTER:
            self.returned(list(self._buffer))
            return self.take_all()
        late, self._late = self._late, []
        returns, self.returns = self.returns, []
        return [*returns, *(job.report for job in late)]

    def returned(self, jobs: Sequence[ClaimedJob]) -> None:
        """These jobs, which had not begun, are handed back."""
        self.pace.stall()
        for lane, given in by_lane(jobs).items():
            self._order.returned(lane, given)

    def take_all(self) -> list[Report]:
        """Empty the buffer."""
        reports = [job.report for job in (*self._buffer, *self._late)]
        self._buffer.clear()
        self._late.clear()
        return reports

    def start_over(self, worker_id: WorkerId) -> None:
        """Go on under a new lease, with nothing claimed."""
        self.worker_id = worker_id
        self._buffer.clear()
        self._order.lanes, self._has_floors = LaneBook(), False
        self._announced.clear()
        self.wants_wake = True
        self.wake()
