"""What is done to jobs that were enqueued: look at them, cancel, retry and delete them."""

from typing import Any

from mainspring.db.database import Database
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.jobs.model import Attempt, Job
from mainspring.domain.types import DEFAULT_TENANT, JobId, JobState, TenantId
from mainspring.services import jobs as services
from mainspring.services.secrets import seal_edit
from mainspring.settings import Settings
from mainspring.store import jobs as job_store


class JobOperations:
    """The part of `Mainspring` that operators use."""

    database: Database
    settings: Settings

    async def ajob(self, job_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Job:
        """One job, live or finished."""
        return await services.get(self.database, JobId(job_id), TenantId(tenant_id))

    async def ajobs(
        self,
        *,
        tenant_id: str = DEFAULT_TENANT,
        state: JobState | None = None,
        queue: str | None = None,
        definition: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Newest first; page on with the last id as `before`."""
        asked = JobFilter(state=state, queue=queue, definition=definition)
        jobs: list[Job] = []
        following = None if before is None else JobId(before)
        while len(jobs) < limit:
            some, following = await services.list_jobs(
                self.database,
                TenantId(tenant_id),
                asked,
                before=following,
                limit=limit - len(jobs),
            )
            jobs += some
            if following is None:
                break
        return jobs

    async def aattempts(self, job_id: int, *, tenant_id: str = DEFAULT_TENANT) -> list[Attempt]:
        """The attempts of a job, first to last."""
        return await services.attempts(self.database, JobId(job_id), TenantId(tenant_id))

    async def acancel(
        self,
        job_id: int,
        reason: str = "canceled by request",
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
    ) -> JobState:
        """Cancel a queued job at once; ask a running one to stop, then the answer is running."""
        call = job_store.cancel(TenantId(tenant_id), JobId(job_id), reason)
        ((state,),) = await self.database.arun(call, connection)
        return JobState(state)

    async def aretry(
        self,
        job_id: int,
        payload: dict[str, Any] | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
    ) -> None:
        """Put a failed, dead-lettered or canceled job back to queued; in another payload the word
        [redacted] stands for the secret that is stored."""
        job, tenant, limit = JobId(job_id), TenantId(tenant_id), self.settings.max_payload_bytes
        if payload is not None:
            payload = await seal_edit(
                self.database, payload, job, tenant_id=tenant, connection=connection
            )
        await self.database.arun(services.plan_retry(job, payload, tenant, limit=limit), connection)

    async def adelete(
        self, job_id: int, *, tenant_id: str = DEFAULT_TENANT, connection: object = None
    ) -> None:
        """Remove a job that is not running, with its attempts."""
        call = job_store.delete(TenantId(tenant_id), JobId(job_id))
        await self.database.arun(call, connection)
