"""The claim policy: which ready jobs a claimer takes, and what a claimed job needs to begin.

Every claimer uses it: the worker, the drain that tests use, and the API for workers over HTTP.

    sweep ─▶ lanes ─▶ share of each ─▶ claim ─▶ token of its rate ─▶ probation ─▶ begins
             └─────── ClaimOrder ──────────┘    └ take_token         └ record_start if alone

The rules are pure and stand in `domain/claiming/`: `lanes.py` says where a claim looks,
`fair_share.py` how much it takes from each lane, `probation.py` how a job is run that lost its
worker before. A job waits for its token and its probation as late as it can: a local worker, which
claims ahead, when the handler is about to be called; the API when it hands out the job, because
nobody says when a worker over HTTP begins.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from psycopg import AsyncConnection

from mainspring.domain.claiming.fair_share import FairShare, Visit
from mainspring.domain.claiming.lanes import Lane, LaneBook, ReadyLane, lane_order
from mainspring.domain.errors import LeaseLost
from mainspring.domain.types import WorkerId
from mainspring.store import attempts, limits
from mainspring.store.attempts import ClaimedRow, Report

_MOST_ORDERS = 1000


class Claimable(Protocol):
    """A claimed job, as far as the order of claims is concerned."""

    @property
    def id(self) -> int: ...


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

    def announced(self, ready: ReadyLane, buffered: Mapping[Lane, int]) -> None:
        """This lane has ready jobs."""
        self.lanes.announced(ready)
        self.shares.announced(ready.lane, ready.weight, buffered)

    def returned(self, lane: Lane, job_ids: Collection[int]) -> None:
        """These jobs go back to their lane, which owes nothing for them."""
        self.lanes.announced(ReadyLane(lane, min(job_ids)))
        self.shares.returned({lane: len(job_ids)})

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
        marks = [(lane, self.lanes.marks.get(lane, 0)) for lane, _ in visits]
        shares = [share for _, share in visits]
        return await attempts.claim(connection, worker_id, marks, limit=limit, shares=shares)

    def note(
        self, visits: Sequence[Visit], claimed: Mapping[Lane, Sequence[Claimable]], limit: int
    ) -> Given:
        """Count what a statement claimed, by lane and in their order there."""
        counts = {lane: len(jobs) for lane, jobs in claimed.items()}
        for lane, jobs in claimed.items():
            self.lanes.claimed(lane, jobs[-1].id)
        return Given(sum(counts.values()), self.shares.claimed(visits, counts, limit))

    async def claim_unbuffered(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        queues: Sequence[str],
        *,
        limit: int,
        tenant_id: str | None = None,
    ) -> list[ClaimedRow]:
        """Look for lanes, of one tenant if given, and claim from them for who keeps no buffer."""
        found = await attempts.discover(connection, queues)
        own = [each for each in found if tenant_id in (None, each.lane.tenant_id)]
        self.swept(own, buffered={})
        rows: list[ClaimedRow] = []

        async def visit(visits: Sequence[Visit], wanted: int) -> Given:
            taken = await self.take(connection, worker_id, visits, limit=wanted)
            claimed = sorted((ClaimedRow(*row) for row in taken), key=lane_order)
            rows.extend(claimed)
            return self.note(visits, by_lane(claimed), wanted)

        await self.claim(limit, visit)
        return rows


def by_lane(rows: Iterable[ClaimedRow]) -> dict[Lane, list[ClaimedRow]]:
    lanes: dict[Lane, list[ClaimedRow]] = defaultdict(list)
    for row in rows:
        lanes[row.lane].append(row)
    return lanes


class ClaimOrders:
    """The orders of a server. Workers with the same queues and tenant have one in common, so that
    together they serve tenants by weight, however few jobs each of them claims."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str | None, frozenset[str]], ClaimOrder] = {}

    def of(self, queues: Iterable[str], tenant_id: str | None) -> ClaimOrder:
        key = (tenant_id, frozenset(queues))
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


async def record_start(connection: AsyncConnection[Any], report: Report) -> None:
    """Record that a suspect is about to run alone in its worker; raises LeaseLost."""
    if not await attempts.mark_alone(connection, report):
        raise LeaseLost(report.job_id)
