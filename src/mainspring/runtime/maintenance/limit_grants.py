"""Grants: lets jobs go that wait for a limit; every worker does it, whoever is first.

A place that comes free serves the room that it was of. Where a limit has places for all of its
rooms, others may have a claim to it, so those are looked at too, a few at a time from where the
last look ended: each gets its turn. What nobody told of is found by a lap over all rooms, every
second or so, and soon after the worker has been busy: then it was not told of everything. A lap
that turned out slow waits twenty times its own duration before the next, half of that when soon.

Someone else granting right now is waited for a few milliseconds: what is there to grant may have
come free behind its back.
"""

import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.freed_places import FreedPlaces
from mainspring.domain.errors import LeaseLost
from mainspring.domain.limits import Room
from mainspring.runtime.loop import Loop
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.store import limits, workers
from mainspring.store.limits import Granted

_PAGE = 400
_FEWEST = 20
_REST = 1.0
_COST_FACTOR = 20.0
_SOON = 0.01
_START = Room("", "", "")


class Grants:
    """The duty of one worker; `has_plenty` says whether more is ready than it can take, `on_ready`
    is called when something may be claimed."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        source: AsyncSource,
        *,
        has_plenty: Callable[[], bool],
        on_ready: Callable[[], None],
    ) -> None:
        self.loop = Loop("grants", self._pass)
        self._connection, self._source = connection, source
        self._has_plenty, self._on_ready = has_plenty, on_ready
        self._freed = FreedPlaces()
        self._shared: set[str] = set()
        self._hungry: set[str] = set()
        self._turns: dict[str, Room] = {}
        self._paced: set[Room] = set()
        self._paced_at = math.inf
        self._lap = Lap()

    def freed(self, rooms: Collection[Room]) -> None:
        """Places of these rooms have come free, one each time a room comes up."""
        self._freed.add(rooms, time.monotonic())
        if self._shared:
            self._hungry.update(self._shared & {room.limit for room in rooms})
        self.loop.wake()

    def hear(self, subject: str) -> None:
        """Jobs may wait that could go: in the room that the message names, or anywhere."""
        if subject:
            room = Room(*orjson.loads(subject))
            self._freed.add_urgent([room])
            self._hungry.update(self._shared & {room.limit})
            self.loop.wake()
        else:
            self._lap.is_lowered = True  # For all that is known.
            self.look()

    def look(self) -> None:
        self._lap.is_due = True
        self.loop.wake()

    async def take_token(self, job: ClaimedJob) -> bool:
        """Whether a job of a rate may start now; if not, it is no longer the worker's."""
        async with self._source.connection() as connection:
            seconds = await limits.take_token(connection, job.report)
        if seconds is None:
            raise LeaseLost(job.id)
        if (room := job.room()) is not None:
            self.freed({room})
        return seconds <= 0

    async def _pass(self) -> float:
        return await self._connection.try_once(self._grant)

    async def _grant(self, connection: AsyncConnection[Any]) -> float:
        freed, hungry = self._take()
        is_served = False
        try:
            is_served = await self._serve(connection, freed, hungry)
        finally:
            if not is_served:
                self._freed.add_urgent(freed)
                self._hungry.update(hungry)
        if not is_served:
            return _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        if self._hungry or self._lap.is_under_way:
            return 0.0
        now = time.monotonic()
        until_freed = self._freed.until_next(now, has_plenty=self._has_plenty())
        rest = _REST if until_freed is None else until_freed
        return max(min(rest, self._lap.next_at - now, self._paced_at - now), 0.0)

    def _take(self) -> tuple[list[Room], set[str]]:
        """What to serve now. What comes free meanwhile may not be seen, so it is served again."""
        now = time.monotonic()
        if now >= self._paced_at:
            self._freed.add_urgent(self._paced)
            self._paced, self._paced_at = set(), math.inf
        freed = self._freed.take(_PAGE, now, has_plenty=self._has_plenty())
        hungry, self._hungry = self._hungry, set()
        return freed, hungry

    async def _serve(
        self, connection: AsyncConnection[Any], freed: Collection[Room], hungry: Collection[str]
    ) -> bool:
        """Whether it was done; False while someone else is granting."""
        began_at = time.monotonic()
        pages = {name: await self._turn(connection, name, len(freed)) for name in hungry}
        if self._lap.is_time(began_at) and not await self._lap.start(connection):
            return False
        lap = await self._lap.page(connection) if self._lap.is_under_way else []
        rooms = list({*freed, *lap, *chain(*pages.values())})
        if rooms:
            granted = await limits.grant(connection, rooms)
            if not granted.is_ours:
                return False
            self._note(pages, rooms, granted)
            if granted.jobs:
                await workers.wake(connection, granted.queues)
                self._on_ready()
        self._lap.passed(lap, began_at)
        return True

    async def _turn(self, connection: AsyncConnection[Any], name: str, freed: int) -> list[Room]:
        """The next few rooms of a limit whose places serve all of them."""
        size = min(max(_FEWEST, 2 * freed), _PAGE)
        after = self._turns.get(name, _START)
        page = await limits.rooms_of_limit(connection, name, after=after, limit=size)
        if len(page) < size and after != _START:
            rest = size - len(page)
            page += await limits.rooms_of_limit(connection, name, after=_START, limit=rest)
        return page

    def _note(
        self, pages: Mapping[str, list[Room]], rooms: Collection[Room], granted: Granted
    ) -> None:
        """Go on with rooms that have more, and limits that have places others wait for."""
        self._freed.add_urgent(granted.unfinished)
        self._freed.learn({room.limit for room in rooms}, granted.roomy)
        if granted.next_in is not None:
            # A token of a rate is under way to one of these.
            self._paced.update(rooms)
            self._paced_at = min(self._paced_at, time.monotonic() + max(granted.next_in, 0.0))
        self._hungry.update(set(granted.shared) - self._shared)
        self._shared.update(granted.shared)
        for name, page in pages.items():
            if len(page) < _FEWEST:
                self._turns.pop(name, None)
                continue
            self._turns[name] = page[-1]
            if granted.jobs and name not in granted.full:
                self._hungry.add(name)


class Lap:
    """A look at all rooms, page by page."""

    def __init__(self) -> None:
        self.is_due = self.is_lowered = True
        self.is_under_way = False
        self._after = _START
        self._cost = self._next_at = self._soonest_at = 0.0
        self._taken_back_at = -math.inf

    @property
    def next_at(self) -> float:
        return self._soonest_at if self.is_due else self._next_at

    def is_time(self, now: float) -> bool:
        """Whether the next is to start, and none is under way."""
        return not self.is_under_way and now >= self.next_at

    async def start(self, connection: AsyncConnection[Any]) -> bool:
        """A limit that was lowered has its places back then; False while someone else grants."""
        now = time.monotonic()
        # It looks at all that hold a place, which takes as long as it takes to grant them some.
        if self.is_lowered or now >= self._taken_back_at + _REST:
            self.is_lowered = False  # Unless a message comes meanwhile.
            if not await limits.take_back(connection):
                self.is_lowered = True
                return False
            self._taken_back_at = now
        self.is_due, self.is_under_way = False, True
        self._after, self._cost = _START, 0.0
        return True

    async def page(self, connection: AsyncConnection[Any]) -> list[Room]:
        return await limits.waiting_rooms(connection, after=self._after, limit=_PAGE)

    def passed(self, page: list[Room], began_at: float) -> None:
        """The rooms of the page have been served."""
        if not self.is_under_way:
            return
        now = time.monotonic()
        self._cost += now - began_at
        if len(page) == _PAGE:
            self._after = page[-1]
            return
        self.is_under_way = False
        self._next_at = now + max(_REST * 0.9, self._cost * _COST_FACTOR)
        self._soonest_at = now + self._cost * _COST_FACTOR / 2


async def grant_all(connection: AsyncConnection[Any]) -> int:
    """Grant once whatever can be; how many jobs went."""
    await limits.take_back(connection)
    count, after = 0, _START
    while page := await limits.waiting_rooms(connection, after=after, limit=_PAGE):
        granted = await limits.grant(connection, page)
        count += granted.jobs
        after = after if granted.unfinished else page[-1]
    return count
