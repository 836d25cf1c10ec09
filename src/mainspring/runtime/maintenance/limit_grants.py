"""Grants: which jobs that wait for limits a worker claims, and when it looks.

A job is granted its place by the statement that claims it (`claim_limited`), so a worker asks only
for what it can run. A place that comes free serves the limit key that it was of. Where all keys of
a limit share its places, others may have a claim to it, so those are looked at too, a few at a time
from where the last look ended: each is served in time. What nobody was notified of is found by a
scan of all keys, every second or so, and soon after the worker has been busy: then it missed
notifications. A scan that turned out slow waits twenty times its own duration before the next, half
of that when soon.

    reports, notifications, tokens, scan ─▶ keys ─▶ claimer ─▶ claim ─▶ buffer
                                             └ no capacity, or other queues wait: notify others

Jobs of one limit may wait in queues of other workers; see `domain/claiming/elsewhere.py`.

Someone else claiming right now is waited for a few milliseconds: what is there to claim may have
come free behind its back. So is a claim that the database refuses because of one key, until that
key is found (`domain/claiming/refused_keys.py`).
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import orjson
import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.elsewhere import Elsewhere
from mainspring.domain.claiming.fair_share import LimitedShares
from mainspring.domain.claiming.freed_places import FreedPlaces
from mainspring.domain.claiming.lanes import Lane, lane_order
from mainspring.domain.claiming.refused_keys import PAUSE_SECONDS, RefusedKeys
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import WorkerId
from mainspring.runtime.loop import Loop
from mainspring.runtime.worker.buffer import Claimed, by_lane
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.services.claiming import ClaimOrder
from mainspring.services.refused_claims import is_of_a_job
from mainspring.store import limits
from mainspring.store.attempts import ClaimedRow
from mainspring.store.limits import FIRST_KEY, LimitedClaim, WaitingKey

_PAGE = 400
_FEWEST = 20
_REST = 1.0
_COST_FACTOR = 20.0
_SOON = 0.01
# To ask a key costs as much as a job or two, so as few are asked as may give enough.
_JOBS_A_KEY, _MOST_JOBS_A_KEY = 5, 10
_START = LimitKey("", "", "")
_LIMIT_NAME = ClaimedRow._fields.index("limit_name")


class Grants:
    """The duty of one worker; `is_full` says whether it can start nothing right now."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        order: ClaimOrder,
        *,
        queues: Sequence[str],
        is_full: Callable[[], bool],
        events: WorkerEvents,
    ) -> None:
        self.loop = Loop("grants", self._pass)
        self._connection, self._order = connection, order
        self._queues, self._is_full, self._events = queues, is_full, events
        self._freed = FreedPlaces()
        self._passed_over: dict[LimitKey, None] = {}
        self._shared: set[str] = set()
        self._shared_due: set[str] = set()
        self._last_keys: dict[str, LimitKey] = {}
        self._awaiting_token: set[LimitKey] = set()
        self._token_at = math.inf
        self._retry_at = -math.inf
        self._scan = KeyScan()
        self._elsewhere = Elsewhere()
        self._refused = RefusedKeys()

    def freed(self, keys: Collection[LimitKey]) -> None:
        """Places of these keys have come free here, one each time a key comes up."""
        now = time.monotonic()
        own = self._elsewhere.freed(keys, now, is_full=self._is_full())
        self._freed.add(own, now)
        if self._shared:
            self._shared_due.update(self._shared & {key.limit for key in own})
        if own:
            self._events.limits_due()
        self.loop.wake()

    def limit_freed(self, announcement: str) -> None:
        """Jobs of the limit key that is announced may be able to go."""
        key = LimitKey(*orjson.loads(announcement))
        self._freed.add_urgent([key])
        self._shared_due.update(self._shared & {key.limit})
        self._events.limits_due()
        self.loop.wake()

    def limits_changed(self) -> None:
        """Jobs of any limit may be able to go."""
        self._scan.is_lowered = True
        self.scan_soon()

    def scan_soon(self) -> None:
        """Jobs may be able to go of which nobody was notified."""
        self._scan.is_due = True
        self.loop.wake()

    # Claims

    def is_due(self, *, has_backlog: bool) -> bool:
        """Whether there may be something to claim; `has_backlog` says that other jobs wait."""
        now = time.monotonic()
        if now < self._retry_at:
            return False
        if self._shared_due or (self._passed_over and not has_backlog):
            return True
        return self._freed.until_next(now, has_backlog=has_backlog) == 0.0

    async def claim(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        *,
        buffered: Callable[[], Mapping[Lane, int]],
        limit: int,
        has_backlog: bool,
    ) -> Claimed:
        """Claim jobs of keys that are due, in order and by lane."""
        given = await self._claim(
            connection, worker_id, buffered(), limit=limit, has_backlog=has_backlog
        )
        if given is None or not given.rows:
            return {}
        now = time.monotonic()
        jobs = [ClaimedJob(row, worker_id, now) for row in given.rows]
        jobs.sort(key=lane_order)
        claimed = by_lane(jobs)
        self._order.note_limited(claimed, given.weights, buffered())
        return claimed

    async def _claim(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        buffered: Mapping[Lane, int],
        *,
        limit: int,
        has_backlog: bool,
    ) -> LimitedClaim | None:
        """None while someone else claims, or if there is nothing to ask for."""
        freed, shared = self._take(limit, has_backlog=has_backlog)
        given, is_served = None, False
        try:
            pages = {name: await self._next_keys(connection, name, len(freed)) for name in shared}
            due = list(dict.fromkeys((*freed, *chain(*pages.values()))))
            keys, later = self._refused.allowed(due, time.monotonic())
            self._freed.add_urgent(later)
            shares = LimitedShares()
            if has_backlog:
                tenants = {key.tenant_id for key in keys}
                shares = self._order.shares.limited_shares(tenants, limit, buffered)
            began_at = time.monotonic()
            if keys:
                given = await self._claim_keys(
                    connection, worker_id, keys, limit=limit, shares=shares
                )
            is_served = given is not None or not keys
        finally:
            if not is_served:
                self._freed.add_urgent(freed)
                self._shared_due.update(shared)
        if given is not None:
            self._note(pages, keys, given, shares=shares)
            self._note_cost(given, time.monotonic() - began_at)
        elif not is_served:
            self._try_again_soon()
        if self._scan.is_under_way:
            self.loop.wake()
        return given

    async def _claim_keys(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        keys: Sequence[LimitKey],
        *,
        limit: int,
        shares: LimitedShares,
    ) -> LimitedClaim | None:
        """None while someone else claims, or if the database refuses this because of a key."""
        try:
            given = await self._order.take_limited(
                connection,
                keys,
                worker_id=worker_id,
                queues=self._queues,
                limit=limit,
                shares=shares,
            )
        except psycopg.Error as error:
            if not is_of_a_job(error):
                raise
            self._refuse(keys, error)
            return None
        self._refused.served(keys)
        return given

    def _refuse(self, keys: Sequence[LimitKey], error: psycopg.Error) -> None:
        if (found := self._refused.refused(keys, time.monotonic())) is not None:
            telemetry.event(
                "limit_key_set_aside",
                limit=found.limit,
                key=found.key,
                tenant=found.tenant_id,
                seconds=PAUSE_SECONDS,
                error=str(error),
            )

    def _take(self, limit: int, *, has_backlog: bool) -> tuple[list[LimitKey], set[str]]:
        """What to serve now. What comes free meanwhile may not be seen, so it is served again."""
        if not has_backlog:
            passed_over, self._passed_over = self._passed_over, {}
            self._freed.add_urgent(passed_over)
        first = next(iter(self._freed.ready), _START)
        expected = min(self._freed.places.get(first.limit, _JOBS_A_KEY), _MOST_JOBS_A_KEY)
        most = min(_PAGE, max(_FEWEST, limit // max(expected, 1)))
        freed = self._freed.take(most, time.monotonic(), has_backlog=has_backlog)
        self._elsewhere.taken(freed)
        shared, self._shared_due = self._shared_due, set()
        return freed, shared

    def _try_again_soon(self) -> None:
        pause = _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        self._retry_at = time.monotonic() + pause
        asyncio.get_running_loop().call_later(pause, self._events.limits_due)

    async def _next_keys(
        self, connection: AsyncConnection[Any], name: str, freed: int
    ) -> list[LimitKey]:
        """The next few keys of a limit whose places serve all of them."""
        size = min(max(_FEWEST, 2 * freed), _PAGE)
        after = self._last_keys.get(name, _START)
        find = partial(limits.waiting_keys_of, connection, name, self._queues)
        page = await find(after=after, limit=size)
        if len(page) < size and after != _START:
            page += await find(after=_START, limit=size - len(page))
        return page

    def _note(
        self,
        pages: Mapping[str, list[LimitKey]],
        keys: Collection[LimitKey],
        given: LimitedClaim,
        *,
        shares: LimitedShares,
    ) -> None:
        """Go on with keys that have more, and limits that have places others wait for."""
        self._freed.add_urgent(given.unfinished)
        if shares.shares is not None:
            # Their turn is still to come, or that of less urgent jobs of theirs.
            self._freed.add_urgent(key for key in keys if not shares.shares[key.tenant_id])
            self._passed_over |= dict.fromkeys(islice(keys, _PAGE - len(self._passed_over)))
        self._freed.learn({key.limit for key in keys}, given.key_places)
        if given.next_in is not None:
            # A token of a rate is under way to one of these.
            self._awaiting_token.update(keys)
            self._token_at = min(self._token_at, time.monotonic() + max(given.next_in, 0.0))
            self.loop.wake()
        self._shared_due.update(set(given.shared) - self._shared)
        self._shared.update(given.shared)
        for name, page in pages.items():
            if len(page) < _FEWEST:
                self._last_keys.pop(name, None)
                continue
            self._last_keys[name] = page[-1]
            if given.rows and name not in given.full:
                self._shared_due.add(name)

    def _note_cost(self, given: LimitedClaim, seconds: float) -> None:
        self._elsewhere.claimed({row[_LIMIT_NAME] for row in given.rows}, time.monotonic())
        if not given.rows:
            self._scan.looked_in_vain(seconds)

    # What to look at

    async def _pass(self) -> float:
        now = time.monotonic()
        if now >= self._token_at:
            self._look_at(self._awaiting_token)
            self._awaiting_token, self._token_at = set(), math.inf
        self._look_at(self._elsewhere.take_left_alone(now))
        if announced := self._elsewhere.take_announced(now, is_full=self._is_full()):
            await self._connection.try_once(partial(limits.announce, keys=announced))
        if self._scan.is_time(now) and not await self._connection.try_once(self._scan.start):
            return _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        if self._is_scan_next():
            await self._connection.try_once(self._look_at_page)
        return self._rest()

    def _rest(self) -> float:
        if self._scan.is_under_way:
            return 0.0 if self._is_scan_next() else _REST
        now = time.monotonic()
        next_at = min(self._scan.next_at, self._token_at, self._elsewhere.next_at)
        return min(_REST, max(next_at - now, 0.0))

    def _is_scan_next(self) -> bool:
        """Whether what the scan has found so far is looked at."""
        return self._scan.is_under_way and len(self._freed.ready) <= _FEWEST

    def _look_at(self, keys: Collection[LimitKey]) -> None:
        if keys:
            self._freed.add_urgent(keys)
            self._shared_due.update(self._shared & {key.limit for key in keys})
            self._events.limits_due()

    async def _look_at_page(self, connection: AsyncConnection[Any]) -> None:
        began_at = time.monotonic()
        page = await self._scan.page(connection)
        self._look_at([key.limit_key for key in page if key.queue in self._queues])
        self._elsewhere.scanned(key.limit for key in page if key.queue not in self._queues)
        self._scan.passed(page, began_at)
        if not self._scan.is_under_way:
            self._elsewhere.scan_ended()


class KeyScan:
    """A look at all keys for which jobs wait, page by page."""

    def __init__(self) -> None:
        self.is_due = self.is_lowered = True
        self.is_under_way = False
        self._after = FIRST_KEY
        self._cost = self._next_at = self._soonest_at = 0.0

    @property
    def next_at(self) -> float:
        return self._soonest_at if self.is_due else self._next_at

    def is_time(self, now: float) -> bool:
        """Whether the next is to start, and none is under way."""
        return not self.is_under_way and now >= self.next_at

    async def start(self, connection: AsyncConnection[Any]) -> bool:
        """What programs of an earlier release have granted waits again if a limit may be lower;
        False while someone else has the lock."""
        if self.is_lowered:
            self.is_lowered = False  # Unless a notification comes meanwhile.
            if not await limits.take_back(connection):
                self.is_lowered = True
                return False
        self.is_due, self.is_under_way = False, True
        self._after, self._cost = FIRST_KEY, 0.0
        return True

    async def page(self, connection: AsyncConnection[Any]) -> list[WaitingKey]:
        return await limits.waiting_keys(connection, after=self._after, limit=_PAGE)

    def looked_in_vain(self, seconds: float) -> None:
        """A claim of keys, most likely found by the scan, came to nothing."""
        if self.is_under_way:
            self._cost += seconds

    def passed(self, page: Sequence[WaitingKey], began_at: float) -> None:
        """The page was read."""
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
