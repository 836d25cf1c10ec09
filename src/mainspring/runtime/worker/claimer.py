"""The claimer: keeps a buffer of claimed jobs filled just ahead of the runners."""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.fair_share import Turns, Visit
from mainspring.domain.claiming.lanes import Lane, LaneBook, Waiting, read_news
from mainspring.domain.claiming.prefetch import PrefetchRate
from mainspring.domain.types import WorkerId
from mainspring.runtime.worker.buffer import Buffer, Claimed, by_lane, lane_of
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.store import attempts, workers
from mainspring.store.attempts import Report

_LARGEST_BATCH = 1000
# To visit a lane costs as much as to claim a job or two, so a claim from many takes more of each.
_LARGEST_BATCH_OF_MANY, _MANY_LANES = 2000, 20
_SATURATED_AFTER = 0.2
_STALE_AFTER = 1.0
# How many jobs are claimed at once from lanes that were told of.
_NEWCOMERS = 200
# Holding back what could start costs time; this often it may.
_HOLD_EVERY = 0.1
_LONGEST_HOLD = 0.25

Given: TypeAlias = tuple[int, Collection[Lane]]
"""How many jobs there were, and the lanes that have no more."""


class Claimer:
    """Claims for one worker; `room` says how many jobs could start at once right now, `away` which
    are out of the buffer for a moment and will be added again."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        *,
        queues: tuple[str, ...],
        poll_seconds: float,
        prefetch: int,
        room: Callable[[], int],
        away: Callable[[], Sequence[ClaimedJob]],
        early: SpeculativeStarts,
        on_claimed: Callable[[], None],
        on_wants_wake: Callable[[], None],
    ) -> None:
        self.worker_id = WorkerId(0)
        self._turns = Turns()
        self.buffer = Buffer(self._turns)
        self.pace = PrefetchRate(prefetch)
        self.is_paused = False
        self._connection = connection
        self._queues = queues
        self._poll_seconds = poll_seconds
        self._room, self._away = room, away
        self._early = early
        self._on_claimed = on_claimed
        self._on_wants_wake = on_wants_wake
        self._lanes = LaneBook()
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()
        self.wants_wake = True
        self._busy_since: float | None = None
        self._has_swept = False
        self._told: set[Lane] = set()
        self._asked: Sequence[Visit] = ()
        self._held_at = float("-inf")
        self._late: list[ClaimedJob] = []  # Claimed by a statement that was under way at the pause.

    def wake(self) -> None:
        """Look now: there may be new work."""
        if self._busy_since is not None:
            self._lanes.hurry()
        self._wake.set()

    def hear(self, message: str) -> None:
        """An enqueue tells of a lane that looked empty, and all workers busy."""
        news = read_news(message)
        if news is None or news.lane.queue not in self._queues or self.is_paused:
            return
        held = self._held()
        self._lanes.told(news)
        self._turns.told(news.lane, news.weight, held)
        self._told.add(news.lane)
        if news.lane not in held and self._would_start_others(news.lane):
            self._hold()
        self._wake.set()
        self._has_room.set()

    @property
    def has_plenty(self) -> bool:
        """Whether more jobs are ready than could be claimed, as far as is known."""
        return self._busy_since is not None

    def made_room(self) -> None:
        """Runners have finished something."""
        self._has_room.set()

    def add(self, jobs: Sequence[ClaimedJob]) -> None:
        """Take back jobs that were away."""
        self.buffer.put(by_lane(jobs))
        self._on_claimed()
        self.made_room()

    async def run(self) -> None:
        while True:
            if self._told:
                await self._claim_told()
            wanted = self._wanted()
            if not wanted:
                self._has_room.clear()
                if not self._wanted() and not self._told:
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
        free = max(self._room() - len(self._away()), 0)
        if len(self.buffer) > ahead // 2 and len(self.buffer) >= free:
            return 0
        is_of_many = len(self._lanes.marks) >= _MANY_LANES
        most = _LARGEST_BATCH_OF_MANY if is_of_many else _LARGEST_BATCH
        return max(0, min(most, free + ahead - len(self.buffer)))

    def _held(self) -> Mapping[Lane, int]:
        """How many jobs of each lane wait to start, those that are away among them."""
        away = self._away()
        if not away:
            return self.buffer.held()
        return Counter(self.buffer.held()) + Counter(map(lane_of, away))

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

        async def discover(connection: AsyncConnection[Any]) -> list[Waiting]:
            nonlocal started
            started = time.monotonic()  # Waiting for the database to come back is no cost.
            return await attempts.discover(connection, self._queues)

        found = await self._connection.run(discover)
        now = time.monotonic()
        self._lanes.swept(found, now=now, cost=now - started)
        held = self._held()
        self._turns.swept(found, held)
        self._turns.forget(self._lanes.marks, held)
        self._has_swept = True
        return bool(found)

    async def _claim_told(self) -> None:
        """Claim from lanes that were told of, even if there is enough to do."""
        lanes, self._told = self._told, set()
        # Beside what is there, but never more than twice what the worker can start soon.
        soon = max(self._room(), 0) + self.pace.ahead()
        wanted = min(_NEWCOMERS, 2 * soon - len(self.buffer))
        try:
            if wanted > 0 and not self.is_paused:
                await self._claim_known(wanted, lanes)
        finally:
            if not self._told:  # Else there are newcomers once more.
                self._release()

    async def _claim_known(self, wanted: int, lanes: Iterable[Lane] | None = None) -> int:
        """Lane by lane as their turns are, until there is enough or none of them has more."""
        left = set(self._lanes.marks if lanes is None else lanes)
        claimed = 0
        while left and claimed < wanted:
            visits = self._turns.plan(left, wanted - claimed, self._held())
            count, empty = await self._visit(visits, wanted - claimed)
            claimed += count
            left.difference_update(empty)
        return claimed

    async def _visit(self, visits: Sequence[Visit], limit: int) -> Given:
        is_alone = self._busy_since is None and not self.buffer
        claim = self._claim_early if is_alone else self._claim_from
        self._asked = visits
        given = await self._connection.run(partial(claim, visits=visits, limit=limit))
        self._asked = ()
        return given

    async def _claim_from(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> Given:
        return self._accept(await self._jobs(connection, visits, limit), visits, limit)

    async def _claim_early(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> Given:
        """What comes alone begins before its claim is committed."""
        async with connection.transaction():
            jobs = await self._jobs(connection, visits, limit)
            begin = not self.is_paused and self._early.suit(jobs)
            if begin:
                self._early.begin(jobs)
                given = self._accept(jobs, visits, limit)
        if not begin:
            return self._accept(jobs, visits, limit)
        self._early.confirm()
        return given

    async def _jobs(
        self, connection: AsyncConnection[Any], visits: Sequence[Visit], limit: int
    ) -> list[ClaimedJob]:
        """What is claimed, in order."""
        worker_id = self.worker_id
        marks = [(lane, self._lanes.marks.get(lane, 0)) for lane, _ in visits]
        shares = [share for _, share in visits]
        rows = await attempts.claim(connection, worker_id, marks, limit=limit, shares=shares)
        if worker_id != self.worker_id:
            return []  # The lease was lost meanwhile; whoever recovers it takes these back.
        now = time.monotonic()
        jobs = [ClaimedJob(row, worker_id, now) for row in rows]
        if len(jobs) > 1:
            jobs.sort(key=_job_id)
        return jobs

    def _accept(self, jobs: list[ClaimedJob], visits: Sequence[Visit], limit: int) -> Given:
        claimed = {visits[0][0]: jobs} if len(visits) == 1 and jobs else by_lane(jobs)
        counts = {lane: len(some) for lane, some in claimed.items()}
        empty = self._turns.claimed(visits, counts, limit)
        self._take(claimed)
        return len(jobs), empty

    def _take(self, claimed: Claimed) -> None:
        if not claimed:
            return
        for lane, jobs in claimed.items():
            self._lanes.claimed(lane, jobs[-1].id)
            if self.is_paused:
                self._late.extend(jobs)
        if not self.is_paused:
            self.buffer.put(claimed)
            self._on_claimed()

    def _would_start_others(self, lane: Lane) -> bool:
        """Whether jobs wait here, or may be on their way, that have no precedence over the lane."""
        others = {*self.buffer.held(), *(asked for asked, _ in self._asked)} - {lane}
        return any(other.priority >= lane.priority for other in others)

    def _hold(self) -> None:
        now = time.monotonic()
        if self.buffer.is_holding or now < self._held_at + _HOLD_EVERY:
            return
        self._held_at = now
        self.buffer.hold()
        # The database may be away; jobs that are here need not wait for it.
        asyncio.get_running_loop().call_later(_LONGEST_HOLD, self._release_after, now)

    def _release(self) -> None:
        if self.buffer.is_holding:
            self.buffer.release()
            self._on_claimed()

    def _release_after(self, held_at: float) -> None:
        if self._held_at == held_at:
            self._release()

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
        self._on_wants_wake()

    def take_stale(self) -> list[Report]:
        """Empty the buffer if its jobs have waited too long behind slow ones."""
        claimed_at = min((job.claimed_at for job in self.buffer), default=math.inf)
        if time.monotonic() - claimed_at < _STALE_AFTER:
            return []
        self.pace.stall()
        for lane, jobs in by_lane(self.buffer).items():
            first = min(job.id for job in jobs)
            self._lanes.told(Waiting(lane, first))
            self._turns.returned({lane: len(jobs)})
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
        self._told.clear()
        self.wants_wake = True
        self.wake()


def _job_id(job: ClaimedJob) -> int:
    return job.id


async def hand_back_unknown(
    connection: AsyncConnection[Any],
    worker_id: WorkerId,
    known: set[int],
    *,
    early: SpeculativeStarts,
) -> None:
    """Return jobs that were claimed by a statement whose answer never arrived. Of those that have
    begun, the ones that are not held here are left in `early`."""
    found = await attempts.held_by(connection, worker_id, known - early.job_ids())
    begun = early.keep(found)
    if unheard := [report for report in found if report not in begun]:
        queues = await attempts.hand_back(connection, unheard)
        telemetry.event("unheard_claims_returned", jobs=len(unheard), queues=sorted(queues))


async def leave(connection: AsyncConnection[Any], worker_id: WorkerId) -> None:
    """Give up a lease together with whatever is still held under it."""
    if unheard := await attempts.held_by(connection, worker_id, set()):
        await attempts.hand_back(connection, unheard)
    await workers.remove(connection, worker_id)
