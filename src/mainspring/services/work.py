"""Use cases of workers over the API: register, claim, keep the lease, leave.

A worker in any language is a row like a local one, with a lease that it renews by a heartbeat. What
it claims is fenced like any job, so a report under a lease that was lost is refused; a worker that
falls silent loses its jobs to the others when the lease ends.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.domain.errors import InvalidPayload
from mainspring.domain.errors.access import Unauthenticated
from mainspring.domain.errors.leases import LeaseLost, WorkerGone
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.housekeeping import ensure_leasable
from mainspring.domain.jobs.options import ensure_queue
from mainspring.domain.types import JobId, Payload, TenantId, WorkerId
from mainspring.services import tokens
from mainspring.services.claiming import ClaimOrders, record_begin
from mainspring.services.http_claims import HttpClaim
from mainspring.services.secrets import Owner, key_ring
from mainspring.services.work_leases import WorkLeases
from mainspring.services.work_payloads import read_payload
from mainspring.services.work_reports import Failure, WorkReports
from mainspring.store import attempts, waits, workers
from mainspring.store import work as store
from mainspring.store.attempts import ClaimedRow
from mainspring.store.work import Lease, Stop
from mainspring.store.workers import WorkerFacts

_FIRST_LOOK = 0.1
_LONGEST_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A claimed job as its worker gets it, with the real values of its secrets."""

    id: JobId
    fence: int
    definition: str
    version: int
    payload: Payload
    attempt: int
    max_attempts: int
    queue: str
    tenant_id: str
    timeout: timedelta
    extras: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one caller's workers."""

    leases: WorkLeases
    orders: ClaimOrders
    token: str

    async def register(
        self, name: str, queues: Sequence[str], *, concurrency: int, lease: timedelta
    ) -> WorkerId:
        for queue in queues:
            ensure_queue(queue)
        ensure_leasable(queues=queues)
        facts = WorkerFacts(name, "api", 0, self.leases.identity, tuple(queues), concurrency, "api")
        async with self.leases.connected() as connection:
            return await workers.register(connection, facts, lease)

    async def renew(self, worker_id: WorkerId, lease: timedelta) -> list[Stop]:
        """Keep the lease; what the worker is to stop."""
        async with self.leases.connected() as connection:
            await self.leases.queues_of(connection, worker_id)
            if await workers.renew(connection, worker_id, lease) is None:
                raise WorkerGone(worker_id)
            return await store.to_stop(connection, worker_id)

    async def leave(self, worker_id: WorkerId) -> None:
        """Give back what is claimed, at once."""
        async with self.leases.connected() as connection:
            await self.leases.queues_of(connection, worker_id)
            claimed = await attempts.held_by(connection, worker_id, set())
            queues = await attempts.hand_back(connection, claimed) if claimed else set()
            await workers.remove(connection, worker_id)
            await workers.wake(connection, queues)

    async def claim(
        self,
        worker_id: WorkerId,
        definitions: Sequence[str],
        *,
        limit: int,
        wait: float,
        held: Sequence[int] | None = None,
    ) -> list[WorkItem]:
        """Up to so many jobs; waits so many seconds for the first. If the worker says which jobs it
        has, those that it holds besides are given first: their answer was lost."""
        ensure_leasable(definitions=definitions)
        until, pause = time.monotonic() + wait, _FIRST_LOOK
        served = self.leases.caller.served
        while True:
            async with self.leases.connected() as connection:
                if pause > _FIRST_LOOK:
                    await tokens.authenticate_again(connection, self.token, self.leases.caller)
                queues = await self.leases.queues_of(connection, worker_id)
                order = self.orders.of(queues, served)
                claim = HttpClaim(connection, order, worker_id, definitions=frozenset(definitions))
                rows = [] if held is None else await claim.undelivered(held, limit=limit)
                if not rows:
                    await waits.release_known(connection, definitions, [])
                    rows = await claim.rows(queues, limit=limit, tenants=served)
                await self._ensure_deliverable(connection, claim, rows)
                await record_begin(connection, [row.report for row in rows if row.runs_once])
                items = await self._items(connection, worker_id, rows)
            left = until - time.monotonic()
            if items or left <= 0:
                return items
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_LOOK)

    async def _ensure_deliverable(
        self, connection: AsyncConnection[Any], claim: HttpClaim, rows: Sequence[ClaimedRow]
    ) -> None:
        """A token may be revoked while its worker waits: then the jobs are someone else's."""
        if not rows:
            return
        try:
            await tokens.authenticate_again(connection, self.token, self.leases.caller)
        except Unauthenticated:
            await claim.hand_back(rows)
            raise

    async def _items(
        self,
        connection: AsyncConnection[Any],
        worker_id: WorkerId,
        rows: Sequence[ClaimedRow],
    ) -> list[WorkItem]:
        if not rows:
            return []
        spans = await store.timeouts(connection, ((row.definition, row.version) for row in rows))
        items = []
        for row in rows:
            try:
                items.append(self._item(row, spans[row.definition, row.version]))
            except (UnreadableSecret, InvalidPayload) as error:
                # Where the key is missing, another server may have it.
                is_lost = getattr(error, "key_id", None) is None
                lease = Lease(worker_id, row.job_id, row.fence)
                with suppress(LeaseLost):
                    failure = Failure(str(error), may_retry=not is_lost)
                    await WorkReports(self.leases).end_failed(connection, lease, failure)
        return sorted(items, key=lambda item: item.id)

    def _item(self, row: ClaimedRow, timeout: timedelta) -> WorkItem:
        keys = key_ring(self.leases.session.settings)
        payload = read_payload(row.payload)
        opened = keys.decrypt(payload, Owner(TenantId(row.tenant_id), row.definition))
        extras = orjson.loads(row.extras) if row.extras else {}
        return WorkItem(
            id=row.job_id,
            fence=row.fence,
            definition=row.definition,
            version=row.version,
            payload=opened.payload,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            queue=row.queue,
            tenant_id=row.tenant_id,
            timeout=timeout,
            extras=extras,
        )
