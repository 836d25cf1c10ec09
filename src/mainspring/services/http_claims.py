"""A claim of a worker over HTTP, by the claim policy of `claiming.py`.

claim ─▶ known to the worker? ─▶ one suspect at a time ─▶ token of its rate ─▶ recorded as begun
   ▲            └ no: waits for     └ no: handed back        └ no: waits for
   └─ again       a handler            at the end               its limit
      until there is enough or nothing is left

What is handed out counts as begun: nobody says when the worker really begins.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection

from mainspring.domain.claiming import probation
from mainspring.domain.claiming.probation import SUSPECT_LOSSES
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import WaitsFor, WorkerId
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
    _suspects: list[ClaimedRow] = field(default_factory=list)
    """Those that have to wait for another. They stay claimed until the end, so that what is behind
    them in their lane can be reached."""

    async def rows(
        self, queues: Sequence[str], *, limit: int, tenant_id: str | None
    ) -> list[ClaimedRow]:
        """Up to so many jobs that the worker is to begin."""
        admitted: list[ClaimedRow] = []
        until = time.monotonic() + _LONGEST_LOOK
        try:
            while len(admitted) < limit and time.monotonic() < until:
                claimed = await self.order.claim_unbuffered(
                    self.connection,
                    self.worker_id,
                    queues,
                    limit=limit - len(admitted),
                    tenant_id=tenant_id,
                )
                if not claimed:
                    break
                admitted += await self._admit(claimed)
        finally:
            await self.hand_back(self._suspects)
        return admitted

    async def _admit(self, claimed: Sequence[ClaimedRow]) -> list[ClaimedRow]:
        """Those of the claimed that begin now."""
        known = [row for row in claimed if row.definition in self.definitions]
        unknown = [row for row in claimed if row.definition not in self.definitions]
        await self.hand_back(unknown, WaitsFor.HANDLER)
        return [row for row in known if await self._begins(row)]

    async def _begins(self, row: ClaimedRow) -> bool:
        if not probation.is_suspect(row.losses):
            return await self._starts(row)
        async with self.connection.transaction():
            await store.lock_worker(self.connection, self.worker_id)
            if await store.runs_suspect(self.connection, self.worker_id, losses=SUSPECT_LOSSES):
                self._suspects.append(row)
                return False
            return await self._starts(row)

    async def _starts(self, row: ClaimedRow) -> bool:
        if row.is_rated and not await self._takes_token(row):
            return False
        if probation.is_on_probation(row.losses):
            await record_start(self.connection, row.report)
        return True

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
