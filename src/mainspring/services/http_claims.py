"""A claim of a worker over HTTP, by the claim policy of `claiming.py`.

claim ─▶ known to the worker? ─▶ probation ──▶ byte budget ──▶ token of its rate ─▶ begins
   ▲            └ no: waits for     └ no: handed back at the end  └ no: waits for
   └─ again       a handler                                         its limit
      until there is enough or nothing is left

What is handed out counts as begun: nobody says when the worker really begins. Nor can its jobs be
given processes of their own. So a suspect that was there each time that several workers died is
handed out **alone**, to a worker that runs nothing else and gets nothing else meanwhile. While the
worker has other jobs the suspect steps aside, but not for ever: then the worker gets no more until
it is free.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection

from mainspring.domain.claiming import probation
from mainspring.domain.claiming.budgets import ClaimBudget
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import JobId, WaitsFor, WorkerId
from mainspring.services.claiming import ClaimOrder, by_lane, record_start, take_token
from mainspring.store import attempts
from mainspring.store import work as store
from mainspring.store.attempts import ClaimedRow

# Thousands of jobs may be ready that this worker cannot run.
_LONGEST_LOOK = 1.0


@dataclass
class HttpClaim:
    """One request of a worker for jobs of the definitions that it can run."""

    connection: AsyncConnection[Any]
    order: ClaimOrder
    worker_id: WorkerId
    definitions: Collection[str]
    _admitted: list[ClaimedRow] = field(default_factory=list)
    _aside: list[ClaimedRow] = field(default_factory=list)
    """Those that cannot begin now. They stay claimed until the end, so that what is behind them in
    their lane can be reached."""
    _is_full: bool = False
    """Whether nothing more may begin, however little the worker has."""
    _budget: ClaimBudget = field(default_factory=ClaimBudget)

    async def rows(
        self, queues: Sequence[str], *, limit: int, tenants: Collection[str] | None
    ) -> list[ClaimedRow]:
        """Up to so many jobs that the worker is to begin."""
        until = time.monotonic() + _LONGEST_LOOK
        try:
            while self._wants(limit) and time.monotonic() < until:
                claimed = await self.order.claim_unbuffered(
                    self.connection,
                    self.worker_id,
                    queues,
                    limit=self._budget.step(limit - len(self._admitted)),
                    tenants=tenants,
                )
                if not claimed:
                    break
                await self._admit(claimed)
        finally:
            await self.hand_back(self._aside)
        return self._admitted

    async def undelivered(self, held: Sequence[int], *, limit: int) -> list[ClaimedRow]:
        """Jobs that the worker holds and does not know of: the answer to their claim was lost. What
        is over the byte budget comes with the next claim."""
        rows: list[ClaimedRow] = []
        while len(rows) < limit and not self._budget.is_used_up:
            known = [*held, *(row.job_id for row in rows)]
            step = self._budget.step(limit - len(rows))
            found = await store.held_besides(self.connection, self.worker_id, known, limit=step)
            rows += [row for row in found if self._fits(row)]
            if len(found) < step:
                break
        return rows

    def _wants(self, limit: int) -> bool:
        is_enough = len(self._admitted) >= limit or self._budget.is_used_up
        return not is_enough and not self._is_full

    def _fits(self, row: ClaimedRow) -> bool:
        return self._budget.admits(row.payload, row.extras)

    async def _admit(self, claimed: Sequence[ClaimedRow]) -> None:
        """Those of the claimed begin that may."""
        known = [row for row in claimed if row.definition in self.definitions]
        unknown = [row for row in claimed if row.definition not in self.definitions]
        await self.hand_back(unknown, WaitsFor.HANDLER)
        lonely = await self._to_run_alone(known)
        has_others, runs_alone = await self._held_beside(known)
        is_busy = has_others or bool(self._admitted)
        first = next((row for row in known if row.job_id in lonely), None)
        if runs_alone or (is_busy and any(lonely.values())):
            self._is_full = True
            self._aside += known
        elif first is not None and not is_busy:
            self._is_full = True
            self._aside += [row for row in known if row is not first]
            await self._begin_alone(first)
        else:
            for row in known:
                if row.job_id in lonely or not self._fits(row):
                    self._aside.append(row)
                elif await self._has_token(row):
                    self._admitted.append(row)

    async def _to_run_alone(self, rows: Iterable[ClaimedRow]) -> dict[JobId, bool]:
        """Those that have to run alone, and whether they have stepped aside for long enough."""
        suspects = [row.job_id for row in rows if row.is_suspect]
        if not suspects:
            return {}
        return await store.to_run_alone(
            self.connection, suspects, lost=probation.ALONE_AFTER, patience=probation.PATIENCE
        )

    async def _held_beside(self, rows: Iterable[ClaimedRow]) -> tuple[bool, bool]:
        """What the worker had before this request, or has by another at the same time."""
        own = [row.job_id for row in (*rows, *self._aside, *self._admitted)]
        return await store.held_beside(self.connection, self.worker_id, own)

    async def _begin_alone(self, row: ClaimedRow) -> None:
        """Marked first and looked at again then: of two requests at once, the one for others looks
        after its claim, so at least one of them sees the other."""
        if not await self._has_token(row):
            return
        await record_start(self.connection, row.report)
        has_others, _ = await self._held_beside([row])
        (self._aside if has_others else self._admitted).append(row)

    async def _has_token(self, row: ClaimedRow) -> bool:
        return not row.is_rated or await self._takes_token(row)

    async def _takes_token(self, row: ClaimedRow) -> bool:
        is_taken = await take_token(self.connection, row.report)
        if row.limit_name is not None:
            # Of what a rate lets go only jobs that have not begun have a place.
            key = LimitKey(row.limit_name, row.limit_key or "", row.tenant_id)
            await store.announce_free_place(self.connection, key)
        return is_taken

    async def hand_back(
        self, rows: Iterable[ClaimedRow], waits_for: WaitsFor | None = None
    ) -> None:
        lanes = by_lane(rows)
        for lane, theirs in lanes.items():
            self.order.returned(lane, theirs)
            await attempts.hand_back(self.connection, [row.report for row in theirs], waits_for)
