"""Grants: lets jobs go that wait for a limit; every worker does it, whoever is first.

A place that comes free serves the limit key that it was of. Where all keys of a limit share its
places, others may have a claim to it, so those are looked at too, a few at a time from where the
last look ended: each is served in time. What nobody was notified of is found by a scan of all
keys, every second or so, and soon after the worker has been busy: then it missed notifications. A
scan that turned out slow waits twenty times its own duration before the next, half of that when
soon.

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
from mainspring.domain.limits import LimitKey
from mainspring.runtime.loop import Loop
from mainspring.store import limits, workers
from mainspring.store.limits import Granted

_PAGE = 400
_FEWEST = 20
_REST = 1.0
_COST_FACTOR = 20.0
_SOON = 0.01
_START = LimitKey("", "", "")


class Grants:
    """The duty of one worker; `has_backlog` says whether more is ready than it can take, `on_ready`
    is called when something may be claimed."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        *,
        has_backlog: Callable[[], bool],
        on_ready: Callable[[], None],
    ) -> None:
        self.loop = Loop("grants", self._pass)
        self._connection = connection
        self._has_backlog, self._on_ready = has_backlog, on_ready
        self._freed = FreedPlaces()
        self._shared: set[str] = set()
        self._shared_due: set[str] = set()
        self._last_keys: dict[str, LimitKey] = {}
        self._awaiting_token: set[LimitKey] = set()
        self._token_at = math.inf
        self._scan = KeyScan()

    def freed(self, keys: Collection[LimitKey]) -> None:
        """Places of these keys have come free, one each time a key comes up."""
        self._freed.add(keys, time.monotonic())
        if self._shared:
            self._shared_due.update(self._shared & {key.limit for key in keys})
        self.loop.wake()

    def limit_freed(self, announcement: str) -> None:
        """Jobs of the limit key that is announced may be able to go."""
        key = LimitKey(*orjson.loads(announcement))
        self._freed.add_urgent([key])
        self._shared_due.update(self._shared & {key.limit})
        self.loop.wake()

    def limits_changed(self) -> None:
        """Jobs of any limit may be able to go, or to have to wait again."""
        self._scan.is_lowered = True
        self.scan_soon()

    def scan_soon(self) -> None:
        """Jobs may be able to go of which nobody was notified."""
        self._scan.is_due = True
        self.loop.wake()

    async def _pass(self) -> float:
        return await self._connection.try_once(self._grant)

    async def _grant(self, connection: AsyncConnection[Any]) -> float:
        freed, shared = self._take()
        is_served = False
        try:
            is_served = await self._serve(connection, freed, shared)
        finally:
            if not is_served:
                self._freed.add_urgent(freed)
                self._shared_due.update(shared)
        if not is_served:
            return _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        if self._shared_due or self._scan.is_under_way:
            return 0.0
        now = time.monotonic()
        until_freed = self._freed.until_next(now, has_backlog=self._has_backlog())
        rest = _REST if until_freed is None else until_freed
        return max(min(rest, self._scan.next_at - now, self._token_at - now), 0.0)

    def _take(self) -> tuple[list[LimitKey], set[str]]:
        """What to serve now. What comes free meanwhile may not be seen, so it is served again."""
        now = time.monotonic()
        if now >= self._token_at:
            self._freed.add_urgent(self._awaiting_token)
            self._awaiting_token, self._token_at = set(), math.inf
        freed = self._freed.take(_PAGE, now, has_backlog=self._has_backlog())
        shared, self._shared_due = self._shared_due, set()
        return freed, shared

    async def _serve(
        self, connection: AsyncConnection[Any], freed: Collection[LimitKey], shared: Collection[str]
    ) -> bool:
        """Whether it was done; False while someone else is granting."""
        began_at = time.monotonic()
        pages = {name: await self._next_keys(connection, name, len(freed)) for name in shared}
        if self._scan.is_time(began_at) and not await self._scan.start(connection):
            return False
        scanned = await self._scan.page(connection) if self._scan.is_under_way else []
        keys = list({*freed, *scanned, *chain(*pages.values())})
        if keys:
            granted = await limits.grant(connection, keys)
            if not granted.is_ours:
                return False
            self._note(pages, keys, granted)
            if granted.jobs:
                await workers.wake(connection, granted.queues)
                self._on_ready()
        self._scan.passed(scanned, began_at)
        return True

    async def _next_keys(
        self, connection: AsyncConnection[Any], name: str, freed: int
    ) -> list[LimitKey]:
        """The next few keys of a limit whose places serve all of them."""
        size = min(max(_FEWEST, 2 * freed), _PAGE)
        after = self._last_keys.get(name, _START)
        page = await limits.waiting_keys_of(connection, name, after=after, limit=size)
        if len(page) < size and after != _START:
            rest = size - len(page)
            page += await limits.waiting_keys_of(connection, name, after=_START, limit=rest)
        return page

    def _note(
        self, pages: Mapping[str, list[LimitKey]], keys: Collection[LimitKey], granted: Granted
    ) -> None:
        """Go on with keys that have more, and limits that have places others wait for."""
        self._freed.add_urgent(granted.unfinished)
        self._freed.learn({key.limit for key in keys}, granted.key_places)
        if granted.next_in is not None:
            # A token of a rate is under way to one of these.
            self._awaiting_token.update(keys)
            self._token_at = min(self._token_at, time.monotonic() + max(granted.next_in, 0.0))
        self._shared_due.update(set(granted.shared) - self._shared)
        self._shared.update(granted.shared)
        for name, page in pages.items():
            if len(page) < _FEWEST:
                self._last_keys.pop(name, None)
                continue
            self._last_keys[name] = page[-1]
            if granted.jobs and name not in granted.full:
                self._shared_due.add(name)


class KeyScan:
    """A look at all keys for which jobs wait, page by page."""

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
            self.is_lowered = False  # Unless a notification comes meanwhile.
            if not await limits.take_back(connection):
                self.is_lowered = True
                return False
            self._taken_back_at = now
        self.is_due, self.is_under_way = False, True
        self._after, self._cost = _START, 0.0
        return True

    async def page(self, connection: AsyncConnection[Any]) -> list[LimitKey]:
        return await limits.waiting_keys(connection, after=self._after, limit=_PAGE)

    def passed(self, page: list[LimitKey], began_at: float) -> None:
        """The keys of the page have been granted."""
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
    while page := await limits.waiting_keys(connection, after=after, limit=_PAGE):
        granted = await limits.grant(connection, page)
        count += granted.jobs
        after = after if granted.unfinished else page[-1]
    return count
