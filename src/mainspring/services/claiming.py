"""The claim policy: which ready jobs a claimer takes, and what a claimed job needs to begin.

Every claimer uses it: the worker, the drain that tests use, and the API for workers over HTTP.

    sweep ─▶ lanes ─▶ share of each ─▶ claim ─▶ token of its rate ─▶ probation ─▶ begins
    keys of limits ─▶ share of each ─┘          └ take_token         └ record_start if alone
    └─────────────── ClaimOrder ──────────┘

A job that waits for a limit is given its place by the statement that claims it, so that nothing
holds a place but what a worker has.

The rules are pure and stand in `domain/claiming/`: `lanes.py` says where a claim looks,
`fair_share.py` how much it takes from each lane, `probation.py` how a job is run that lost its
worker before. A job waits for its token and its probation as late as it can: a local worker, which
claims ahead, when the handler is about to be called; the API when it hands out the job, because
nobody says when a worker over HTTP begins.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.claiming.fair_share import FairShare, LimitedShares, Visit
from mainspring.domain.claiming.lanes import Lane, LaneBook, ReadyLane, lane_order
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import WorkerId
from mainspring.services.refused_claims import Claim, LaneSpan
from mainspring.store import attempts, limits
from mainspring.store.attempts import ClaimedRow, Report
from mainspring.store.limits import FIRST_KEY, LimitedClaim, WaitingKey

_MOST_ORDERS = 1000
# Who keeps no buffer looks at so many keys of limits at a time, and for so long.
_PAGE = 400
_LONGEST_LOOK = 0.25
# Someone else claims jobs of limits right now; that takes milliseconds.
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.005


class Claimable(Protocol):
    """A claimed job, as far as the order of claims is concerned."""

    @property
    def id(self) -> int: ...
    @property
    def limit_name(self) -> str | None: ...


class Given(NamedTuple):
    """What lanes gave to a statement: how many jobs, and which lanes have no more."""

    jobs: int
    empty: Collection[Lane]


VisitLanes = Callable[[Sequence[Visit], int], Awaitable[Given]]
"""Runs one claim statement: the lanes it visits, and how many jobs are wanted at most."""


def _no_buffer() -> Mapping[Lane, int]:
    return {}


class ClaimOrder:
    """The lanes that a claimer knows, and how much each of them gives to a claim."""

    def __init__(self) -> None:
        self.lanes = LaneBook()
        self.shares = FairShare()
        self._last_key = FIRST_KEY

    def swept(
        self,
        found: Sequence[ReadyLane],
        *,
        now: float = 0.0,
        cost: float = 0.0,
        buffered: Mapping[Lane, int],
    ) -> None:
        """These lanes have ready jobs, and no others have."""
        self.lanes.swept(found, now=now, cost=cost)
        self.shares.swept(found, buffered)
        self.shares.forget(self.lanes.marks, buffered)

    def swept_above(
        self,
        found: Sequence[ReadyLane],
        *,
        now: float,
        cost: float,
        buffered: Mapping[Lane, int],
    ) -> None:
        """Behind the marks these lanes have ready jobs, and no others have."""
        self.lanes.swept_above(found, now=now, cost=cost)
        self.shares.swept(found, buffered)

    def announced(self, ready: ReadyLane, buffered: Mapping[Lane, int]) -> None:
        """This lane has ready jobs."""
        self.lanes.announced(ready)
        self.shares.announced(ready.lane, ready.weight, buffered)

    def named(
        self,
        lane: Lane,
        job_ids: Collection[int],
        *,
        weight: int | None,
        buffered: Mapping[Lane, int],
    ) -> None:
        """These jobs of the lane are ready, wherever its mark is; the weight is that of its tenant,
        if it is known."""
        self.lanes.name(lane, job_ids)
        self.shares.announced(lane, weight or self.shares.weights.get(lane, 1), buffered)

    def returned(self, lane: Lane, jobs: Collection[Claimable]) -> None:
        """These jobs go back to their lane, or to wait for their limits; it owes nothing for
        them."""
        ready = [job.id for job in jobs if job.limit_name is None]
        if ready:
            self.lanes.announced(ReadyLane(lane, min(ready)))
            self.shares.returned({lane: len(ready)})
        self.shares.returned_limited({lane: len(jobs) - len(ready)})

    async def claim(
        self,
        wanted: int,
        visit: VisitLanes,
        *,
        lanes: Iterable[Lane] | None = None,
        buffered: Callable[[], Mapping[Lane, int]] = _no_buffer,
    ) -> int:
        """Visit lanes, all that are known unless given, until there is enough or none of them has
        more; how many jobs they gave."""
        left = set(self.lanes.marks if lanes is None else lanes)
        claimed = 0
        while left and claimed < wanted:
            visits = self.shares.plan(left, wanted - claimed, buffered())
            given = await visit(visits, wanted - claimed)
            claimed += given.jobs
            left.difference_update(given.empty)
        return claimed

    async def take(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        visits: Sequence[Visit],
        *,
        limit: int,
    ) -> list[tuple[Any, ...]]:
        """One claim statement; rows in the shape of ClaimedRow, in no particular order. Note them
        before anything else is claimed."""
        if self.lanes.named:
            return await self._take_parts(Claim(connection, worker_id), visits, limit)
        # As is nearly always the case, and there may be many lanes: no spans are made of them.
        marks = self.lanes.marks
        try:
            return await attempts.claim(
                connection,
                worker_id,
                [(lane, marks.get(lane, 0)) for lane, _ in visits],
                limit=limit,
                shares=[share for _, share in visits],
            )
        except psycopg.Error as error:
            claim = Claim(connection, worker_id)
            return await claim.rows_apart(self._parts(visits), limit, error)

    async def _take_parts(
        self, claim: Claim, visits: Sequence[Visit], limit: int
    ) -> list[tuple[Any, ...]]:
        parts = self._parts(visits)
        try:
            rows = await claim.rows(parts, limit)
        except psycopg.Error as error:
            rows = await claim.rows_apart(parts, limit, error)
        if len(parts) > len(visits):
            # Once all that was wanted was taken, not all of the named ones were looked at.
            looked = {row[0] for row in rows} if len(rows) >= limit else None
            for lane, span in parts:
                if looked is None or span.until in looked:
                    self.lanes.looked(lane, span.until)
        return rows

    def _parts(self, visits: Sequence[Visit]) -> list[LaneSpan]:
        return [(lane, span) for lane, share in visits for span in self.lanes.spans(lane, share)]

    def note(
        self, visits: Sequence[Visit], claimed: Mapping[Lane, Sequence[Claimable]], limit: int
    ) -> Given:
        """Count what a statement claimed, by lane and in their order there."""
        counts = {lane: len(jobs) for lane, jobs in claimed.items()}
        for lane, jobs in claimed.items():
            self.lanes.claimed(lane, jobs[-1].id)
        return Given(sum(counts.values()), self.shares.claimed(visits, counts, limit))

    async def take_limited(
        self,
        connection: AsyncConnection[Any],
        keys: Sequence[LimitKey],
        *,
        worker_id: WorkerId,
        queues: Sequence[str],
        limit: int,
        shares: LimitedShares,
    ) -> LimitedClaim | None:
        """One claim statement for jobs that wait for limits; None while someone else makes one.
        Note the rows before anything else is claimed."""
        return await limits.claim(
            connection,
            keys,
            worker_id=worker_id,
            queues=queues,
            limit=limit,
            shares=shares.shares,
            lowest=shares.lowest,
        )

    def note_limited(
        self,
        claimed: Mapping[Lane, Sequence[Claimable]],
        weights: Mapping[str, int],
        buffered: Mapping[Lane, int],
    ) -> None:
        """Count what was claimed of jobs that waited for limits, by lane."""
        counts = {lane: len(jobs) for lane, jobs in claimed.items()}
        self.shares.claimed_limited(counts, weights, buffered)

    async def claim_unbuffered(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        queues: Sequence[str],
        *,
        limit: int,
        tenants: Collection[str] | None = None,
    ) -> list[ClaimedRow]:
        """Look for lanes, of some tenants if given, and claim from them for who keeps no buffer."""
        found = await attempts.discover(connection, queues)
        own = [each for each in found if tenants is None or each.lane.tenant_id in tenants]
        self.swept(own, buffered={})
        rows = await self.claim_limited(connection, worker_id, queues, limit=limit, tenants=tenants)

        async def visit(visits: Sequence[Visit], wanted: int) -> Given:
            taken = await self.take(connection, worker_id, visits, limit=wanted)
            claimed = sorted((ClaimedRow(*row) for row in taken), key=lane_order)
            rows.extend(claimed)
            return self.note(visits, by_lane(claimed), wanted)

        await self.claim(limit - len(rows), visit)
        return rows

    async def claim_limited(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        queues: Sequence[str],
        *,
        limit: int,
        tenants: Collection[str] | None = None,
    ) -> list[ClaimedRow]:
        """Jobs that wait for limits, of all keys in turn from where the last look ended."""
        rows: list[ClaimedRow] = []
        began_after, until = self._last_key, time.monotonic() + _LONGEST_LOOK
        while len(rows) < limit and time.monotonic() < until:
            page = await limits.waiting_keys(connection, after=self._last_key, limit=_PAGE)
            if keys := _own_keys(page, queues, tenants):
                left = limit - len(rows)
                rows += await self._claim_keys(
                    connection, keys, worker_id=worker_id, queues=queues, limit=left
                )
            self._last_key = page[-1] if len(page) == _PAGE else FIRST_KEY
            if self._last_key == FIRST_KEY:
                if began_after == FIRST_KEY or rows:
                    break
                began_after = FIRST_KEY  # Once more, from the start.
        return rows

    async def _claim_keys(
        self,
        connection: AsyncConnection[Any],
        keys: Sequence[LimitKey],
        *,
        worker_id: WorkerId,
        queues: Sequence[str],
        limit: int,
    ) -> list[ClaimedRow]:
        shares = self.shares.limited_shares({key.tenant_id for key in keys}, limit, {})
        for _ in range(_LOCK_TRIES):
            given = await self.take_limited(
                connection,
                keys,
                worker_id=worker_id,
                queues=queues,
                limit=limit,
                shares=shares,
            )
            if given is not None:
                rows = [ClaimedRow(*row) for row in given.rows]
                self.note_limited(by_lane(rows), given.weights, {})
                return rows
            await asyncio.sleep(_LOCK_PAUSE)
        return []


def _own_keys(
    page: Iterable[WaitingKey], queues: Collection[str], tenants: Collection[str] | None
) -> list[LimitKey]:
    theirs = (key for key in page if tenants is None or key.tenant_id in tenants)
    own = (key for key in theirs if key.queue in queues)
    return list(dict.fromkeys(key.limit_key for key in own))


def by_lane(rows: Iterable[ClaimedRow]) -> dict[Lane, list[ClaimedRow]]:
    lanes: dict[Lane, list[ClaimedRow]] = defaultdict(list)
    for row in rows:
        lanes[row.lane].append(row)
    return lanes


class ClaimOrders:
    """The orders of a server. Workers with the same queues and tenants have one in common, so that
    together they serve tenants by weight, however few jobs each of them claims."""

    def __init__(self) -> None:
        self._orders: dict[tuple[frozenset[str] | None, frozenset[str]], ClaimOrder] = {}

    def of(self, queues: Iterable[str], tenants: Iterable[str] | None) -> ClaimOrder:
        key = (None if tenants is None else frozenset(tenants), frozenset(queues))
        order = self._orders.pop(key, None) or ClaimOrder()
        self._orders[key] = order
        if len(self._orders) > _MOST_ORDERS:
            del self._orders[next(iter(self._orders))]
        return order


async def take_token(connection: AsyncConnection[Any], report: Report) -> bool:
    """Whether a job of a rate may begin. If not, it waits for its limit again and its lease has
    ended; raises LeaseLost if there was none in the first place."""
    seconds = await limits.take_token(connection, report)
    if seconds is None:
        raise LeaseLost(report.job_id)
    return seconds <= 0


async def record_begin(connection: AsyncConnection[Any], reports: Sequence[Report]) -> None:
    """Record that jobs which run at most once are about to begin; raises LeaseLost."""
    if reports and await attempts.mark_begun(connection, reports) < len(reports):
        raise LeaseLost(reports[0].job_id)


async def record_start(connection: AsyncConnection[Any], report: Report) -> None:
    """Record that a suspect is about to run alone in its worker; raises LeaseLost."""
    if not await attempts.mark_alone(connection, report):
        raise LeaseLost(report.job_id)
