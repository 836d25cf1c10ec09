"""The leases of workers over the API: who holds one, and what it runs."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.request_sessions import RequestSession
from mainspring.domain.access.roles import Caller
from mainspring.domain.errors.leases import LeaseLost, WorkerGone
from mainspring.domain.types import AttemptStatus, WorkerId
from mainspring.store import work as store
from mainspring.store.work import Lease, LeasedJob, PastAttempt


@dataclass(frozen=True, slots=True)
class WorkLeases:
    """The leases of one caller's workers."""

    session: RequestSession
    caller: Caller

    @property
    def identity(self) -> str:
        """By which the workers of the caller are known."""
        return f"api:{self.caller.tenant_id or '*'}:{self.caller.actor}"

    def connected(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        return self.session.connection()

    async def queues_of(self, connection: AsyncConnection[Any], worker_id: WorkerId) -> list[str]:
        """Raises WorkerGone if the worker has no lease, or is someone else's."""
        queues = await store.queues_of(connection, worker_id, self.identity)
        if queues is None:
            raise WorkerGone(worker_id)
        return queues

    async def job_of(self, connection: AsyncConnection[Any], lease: Lease) -> LeasedJob:
        """Raises WorkerGone or LeaseLost if the worker does not run the job any more."""
        await self.queues_of(connection, lease.worker_id)
        job = await store.leased_job(connection, lease)
        if job is None:
            raise await self._refusal(connection, lease)
        return job

    async def past_attempt(
        self, connection: AsyncConnection[Any], lease: Lease
    ) -> PastAttempt | None:
        """None if the caller has no such attempt, or it runs on."""
        return await store.past_attempt(
            connection, lease, identity=self.identity, tenants=self.caller.served
        )

    async def _refusal(self, connection: AsyncConnection[Any], lease: Lease) -> LeaseLost:
        """Why a worker that has its lease may not report on a job that it does not run."""
        past = await self.past_attempt(connection, lease)
        if past is None:
            return LeaseLost(
                lease.job_id,
                f"worker {lease.worker_id} has no attempt of job {lease.job_id} with this fence; "
                "report only jobs that its claims returned, each with its fence",
            )
        if past.status is AttemptStatus.LOST:
            return LeaseLost(lease.job_id)
        return LeaseLost(
            lease.job_id,
            f"this attempt of job {lease.job_id} has ended already, as {past.status}; report the "
            "end of an attempt once",
        )
