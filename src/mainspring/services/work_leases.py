"""The leases of workers over the API: who holds one, and what it runs."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.request_sessions import RequestSession
from mainspring.domain.access.roles import Caller
from mainspring.domain.errors.leases import LeaseLost, WorkerGone
from mainspring.domain.types import WorkerId
from mainspring.store import work as store
from mainspring.store.work import Lease, LeasedJob


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
            raise LeaseLost(lease.job_id)
        return job
