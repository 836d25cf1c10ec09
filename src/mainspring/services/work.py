"""Use cases of workers over the API: register, claim, keep the lease, report, leave.

A worker in any language is a row like a local one, with a lease that it renews by a heartbeat. What
it claims is fenced like any job, so a report under a lease that was lost is refused; a worker that
falls silent loses its jobs to the others when the lease ends.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.database import Database
from mainspring.db.sql_errors import translated
from mainspring.domain.access.roles import Caller
from mainspring.domain.documents import is_deeper
from mainspring.domain.errors import InvalidPayload, LeaseLost, PayloadTooLarge
from mainspring.domain.errors.access import Unauthenticated, WorkerGone
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.housekeeping import ensure_leasable
from mainspring.domain.jobs.model import Progress
from mainspring.domain.jobs.options import (
    MAX_CHECKPOINT_BYTES,
    MAX_PROGRESS_BYTES,
    MAX_RESULT_BYTES,
    ensure_queue,
    holds_nul,
)
from mainspring.domain.jobs.outcomes import End, Outcome, Requeue, Trials, clean, of_failure
from mainspring.domain.limits import LimitKey
from mainspring.domain.secrets.paths import MARKED_NAME, USES_MARK, secrets_in
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.domain.types import (
    AttemptStatus,
    JobId,
    JobState,
    Payload,
    TenantId,
    WorkerId,
)
from mainspring.services import tokens
from mainspring.services.claiming import ClaimOrders
from mainspring.services.http_claims import HttpClaim
from mainspring.services.secrets import Owner, key_ring
from mainspring.store import attempts, flows, waits, workers
from mainspring.store import work as store
from mainspring.store.attempts import ClaimedRow, Ending, Return, Successes
from mainspring.store.work import Lease, LeasedJob, Stop
from mainspring.store.workers import WorkerFacts

_FIRST_LOOK = 0.1
_LONGEST_LOOK = 1.0
# Well below what the encoder of answers takes.
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A claimed job as its worker gets it, with the real values of its secrets."""

    id: JobId
    fence: int
    definition: str
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

    database: Database
    caller: Caller
    orders: ClaimOrders
    token: str

    async def register(
        self, name: str, queues: Sequence[str], *, concurrency: int, lease: timedelta
    ) -> WorkerId:
        for queue in queues:
            ensure_queue(queue)
        ensure_leasable(queues=queues)
        facts = WorkerFacts(name, "api", 0, self._identity, tuple(queues), concurrency, "api")
        async with self._connected() as connection:
            return await workers.register(connection, facts, lease)

    async def renew(self, worker_id: WorkerId, lease: timedelta) -> list[Stop]:
        """Keep the lease; what the worker is to stop."""
        async with self._connected() as connection:
            await self._queues(connection, worker_id)
            if not await workers.renew(connection, worker_id, lease):
                raise WorkerGone(worker_id)
            return await store.to_stop(connection, worker_id)

    async def leave(self, worker_id: WorkerId) -> None:
        """Give back what is claimed, at once."""
        async with self._connected() as connection:
            await self._queues(connection, worker_id)
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
        while True:
            async with self._connected() as connection:
                if pause > _FIRST_LOOK:
                    await tokens.authenticate_again(connection, self.token, self.caller)
                queues = await self._queues(connection, worker_id)
                order = self.orders.of(queues, self.caller.tenant_id)
                claim = HttpClaim(connection, order, worker_id, definitions=frozenset(definitions))
                rows = [] if held is None else await claim.undelivered(held, limit=limit)
                if not rows:
                    await waits.release_known(connection, definitions, [])
                    rows = await claim.rows(queues, limit=limit, tenant_id=self.caller.tenant_id)
                await self._ensure_deliverable(connection, claim, rows)
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
            await tokens.authenticate_again(connection, self.token, self.caller)
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
                    await self._fail(
                        connection, lease, str(error), may_retry=not is_lost, delay=None
                    )
        return sorted(items, key=lambda item: item.id)

    def _item(self, row: ClaimedRow, timeout: timedelta) -> WorkItem:
        keys = key_ring(self.database.settings)
        payload = _read_payload(row.payload)
        opened = keys.decrypt(payload, Owner(TenantId(row.tenant_id), row.definition))
        extras = orjson.loads(row.extras) if row.extras else {}
        return WorkItem(
            id=row.job_id,
            fence=row.fence,
            definition=row.definition,
            payload=opened.payload,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            queue=row.queue,
            tenant_id=row.tenant_id,
            timeout=timeout,
            extras=extras,
        )

    # Reports

    async def progress(self, lease: Lease, progress: Progress) -> None:
        async with self._connected() as connection:
            job = await self._leased(connection, lease)
            facts = {
                "current": progress.current,
                "total": progress.total,
                "message": progress.message,
                "data": progress.data,
            }
            shown = self._redactor(job).value(facts)
            encoded = _encoded("progress", shown, MAX_PROGRESS_BYTES)
            await attempts.report_progress(connection, [(lease.report, encoded)])

    async def checkpoint(self, lease: Lease, checkpoint: Any) -> None:
        async with self._connected() as connection:
            await self._leased(connection, lease)
            text = _encoded("checkpoint", checkpoint, MAX_CHECKPOINT_BYTES).decode()
            if not await attempts.save_checkpoint(connection, lease.report, text):
                raise LeaseLost(lease.job_id)

    async def complete(self, lease: Lease, result: Any) -> None:
        async with self._connected() as connection:
            job = await self._leased(connection, lease)
            encoded = self._encoded_result(job, result)
            reports = Successes([lease.job_id], [lease.fence], [0], [job.ran], [encoded])
            finished = await attempts.finish_succeeded(connection, lease.worker_id, reports)
            await self._ended(connection, lease, job, finished=finished)

    async def fail(
        self, lease: Lease, error: str, *, may_retry: bool, delay: timedelta | None
    ) -> JobState:
        """What the job has become: queued if it is tried again."""
        async with self._connected() as connection:
            return await self._fail(connection, lease, error, may_retry=may_retry, delay=delay)

    async def cancel(self, lease: Lease, reason: str) -> None:
        """The worker has stopped as it was asked to."""
        async with self._connected() as connection:
            job = await self._leased(connection, lease)
            shown = self._redactor(job).tail(reason)
            outcome = End(JobState.CANCELED, AttemptStatus.CANCELED, clean(shown))
            await self._end(connection, lease, job, outcome=outcome)

    async def _fail(
        self,
        connection: AsyncConnection[Any],
        lease: Lease,
        error: str,
        *,
        may_retry: bool,
        delay: timedelta | None,
    ) -> JobState:
        job = await self._leased(connection, lease)
        shown = clean(self._redactor(job).tail(error))
        outcome = _failure(job, shown, may_retry=may_retry, delay=delay)
        await self._end(connection, lease, job, outcome=outcome)
        return outcome.state if isinstance(outcome, End) else JobState.QUEUED

    async def _end(
        self, connection: AsyncConnection[Any], lease: Lease, job: LeasedJob, *, outcome: Outcome
    ) -> None:
        facts = (lease.job_id, lease.fence, 0, job.ran)
        if isinstance(outcome, End):
            end = (outcome.state, outcome.status, outcome.error, outcome.failed)
            finished = await attempts.finish_ended(
                connection, lease.worker_id, [Ending(*facts, *end)]
            )
        elif isinstance(outcome, Requeue):
            again = (outcome.status, outcome.error, outcome.failed, outcome.delay)
            finished = await attempts.finish_requeued(
                connection, lease.worker_id, [Return(*facts, *again)]
            )
        else:
            raise TypeError(f"{outcome!r} is not an unsuccessful outcome")
        await self._ended(connection, lease, job, finished=finished)

    async def _ended(
        self,
        connection: AsyncConnection[Any],
        lease: Lease,
        job: LeasedJob,
        *,
        finished: attempts.Finished,
    ) -> None:
        """Refuse who has lost the lease; else let go whoever waited for the job."""
        if finished.refused:
            raise LeaseLost(lease.job_id)
        if finished.parents:
            await flows.settle(connection, finished.parents)
        if job.limit_name is not None:
            key = LimitKey(job.limit_name, job.limit_key or "", job.tenant_id)
            await store.announce_free_place(connection, key)

    # Parts

    @property
    def _identity(self) -> str:
        return f"api:{self.caller.tenant_id or '*'}:{self.caller.actor}"

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection[Any]]:
        with translated():
            async with (await self.database.async_pool()).connection() as connection:
                yield connection

    async def _queues(self, connection: AsyncConnection[Any], worker_id: WorkerId) -> list[str]:
        queues = await store.queues_of(connection, worker_id, self._identity)
        if queues is None:
            raise WorkerGone(worker_id)
        return queues

    async def _leased(self, connection: AsyncConnection[Any], lease: Lease) -> LeasedJob:
        await self._queues(connection, lease.worker_id)
        job = await store.leased_job(connection, lease)
        if job is None:
            raise LeaseLost(lease.job_id)
        return job

    def _encoded_result(self, job: LeasedJob, result: Any) -> bytes | None:
        if result is None:
            return None
        return _encoded("result", self._redactor(job).value(result), MAX_RESULT_BYTES)

    def _redactor(self, job: LeasedJob) -> Redactor:
        """Knows what must not be seen of the job's payload, as far as it can be read."""
        keys = key_ring(self.database.settings)
        try:
            payload = _read_payload(job.payload)
        except InvalidPayload:
            return NO_SECRETS  # No worker has ever got it.
        opened = keys.readable_secrets(payload, Owner(job.tenant_id, job.definition))
        return Redactor(opened.secrets | secrets_in(opened.payload, job.secret_paths))


def _failure(job: LeasedJob, error: str, *, may_retry: bool, delay: timedelta | None) -> Outcome:
    if not may_retry:
        return End(JobState.FAILED, AttemptStatus.FAILED, error, failed=1)
    trials = Trials(job.failures, job.max_attempts, job.backoff)
    outcome = of_failure(error, trials, random=random.random)
    if delay is not None and isinstance(outcome, Requeue):
        return Requeue(outcome.status, outcome.error, delay, failed=1)
    return outcome


def _read_payload(text: str) -> Any:
    """Raises InvalidPayload for one that could not be sent on; SQL callers can nest deeper."""
    payload = None
    with suppress(orjson.JSONDecodeError):
        payload = orjson.loads(text)
    may_be_deep = text.count("{") + text.count("[") > _DEEPEST
    if payload is None or (may_be_deep and is_deeper(payload, _DEEPEST)):
        raise InvalidPayload(
            f"the payload is nested more than {_DEEPEST} levels deep, which HTTP workers cannot "
            "receive; flatten it"
        )
    return payload


def _encoded(what: str, value: Any, limit: int) -> bytes:
    if holds_nul(value):
        raise InvalidPayload("it contains a NUL byte, which PostgreSQL cannot store")
    encoded = orjson.dumps(value)
    if len(encoded) > limit:
        raise PayloadTooLarge(len(encoded), limit, what=what)
    if MARKED_NAME in encoded:
        raise InvalidPayload(f"the {what} {USES_MARK}")
    return encoded
