"""Enqueued jobs: read, cancel, retry and delete them.

newest = await app.jobs.alist(queue="mail", state=["queued", "running"], limit=20)
app.jobs.cancel(newest[0].id, "no longer needed")
"""

from datetime import datetime
from typing import Any

from mainspring.app import ids
from mainspring.app.namespaces import Namespace, blocking, twins
from mainspring.db.plans import Plan
from mainspring.domain.filters import Several
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.jobs.model import Attempt, Job
from mainspring.domain.types import DEFAULT_TENANT, JobId, JobState, TenantId
from mainspring.domain.why import Why
from mainspring.services import jobs as services
from mainspring.services.why import why as explain

# Inside the class `list` is one of its methods.
Found = list[Job]
Attempts = list[Attempt]


class Jobs(Namespace):
    """The jobs of an app: `app.jobs`."""

    async def aget(self, job_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Job:
        """One job, live or finished; raises JobNotFound."""
        return await services.get(self._app.database, ids.job(job_id), TenantId(tenant_id))

    async def alist(
        self,
        *,
        tenant_id: str = DEFAULT_TENANT,
        state: Several[str] = None,
        queue: Several[str] = None,
        definition: Several[str] = None,
        source: Several[str] = None,
        tag: Several[str] = None,
        error: Several[str] = None,
        error_key: Several[str] = None,
        created_by: Several[str] = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        schedule: Several[str] = None,
        slot_at: datetime | None = None,
        trigger: Several[str] = None,
        event_id: Several[int] = None,
        flow_id: Several[int] = None,
        parent_id: Several[int] = None,
        worker_id: Several[int] = None,
        definition_version: Several[int] = None,
        before: int | None = None,
        limit: int = 50,
    ) -> Found:
        """Jobs, newest first; pass the last id as `before` for the next page. A filter takes one
        value or a list of alternatives, e.g. `state=["queued", "running"]`."""
        asked = JobFilter.of(
            state=state,
            queue=queue,
            definition=definition,
            source=source,
            tag=tag,
            error=error,
            error_key=error_key,
            created_by=created_by,
            created_after=created_after,
            created_before=created_before,
            schedule=schedule,
            slot_at=slot_at,
            trigger=trigger,
            event_id=event_id,
            flow_id=flow_id,
            parent_id=parent_id,
            worker_id=worker_id,
            definition_version=definition_version,
        )
        jobs: Found = []
        tenant = TenantId(tenant_id)
        following = None if before is None else JobId(ids.number("before", before))
        while len(jobs) < limit:
            some, following = await services.list_jobs(
                self._app.database, tenant, asked, before=following, limit=limit - len(jobs)
            )
            jobs += await services.load_jobs(self._app.database, tenant, some)
            if following is None:
                break
        return jobs

    async def aattempts(self, job_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Attempts:
        """The attempts of a job, first to last; empty if it has none."""
        return await services.attempts(self._app.database, ids.job(job_id), TenantId(tenant_id))

    async def awhy(self, job_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Why:
        """Why a job does not run, or what it does: the reasons in order of weight, each with what
        resolves it. Raises JobNotFound for a job of another tenant; an id that no job has is
        explained."""
        return await explain(self._app.database, ids.job(job_id), TenantId(tenant_id))

    get = blocking(aget)
    list = blocking(alist)
    attempts = blocking(aattempts)
    why = blocking(awhy)

    def _cancel(
        self,
        job_id: int,
        reason: str = "canceled by request",
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
    ) -> Plan[JobState]:
        """Cancel a queued job; ask a running one to stop, in which case running is returned. Raises
        IllegalMove if the job has ended."""
        return services.cancel(
            ids.job(job_id),
            reason,
            TenantId(tenant_id),
            settings=self._app.settings,
            connection=connection,
        )

    def _retry(
        self,
        job_id: int,
        payload: dict[str, Any] | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
        connection: object = None,
    ) -> Plan[None]:
        """Put a failed, dead-lettered or canceled job back to queued; raises IllegalMove for any
        other. In a new payload, [redacted] keeps the stored secret."""
        return services.retry(
            ids.job(job_id),
            payload,
            TenantId(tenant_id),
            settings=self._app.settings,
            connection=connection,
        )

    def _delete(
        self, job_id: int, *, tenant_id: str = DEFAULT_TENANT, connection: object = None
    ) -> Plan[None]:
        """Delete a job that is not running, with its attempts."""
        return services.delete(ids.job(job_id), TenantId(tenant_id), connection=connection)

    cancel, acancel = twins(_cancel)
    retry, aretry = twins(_retry)
    delete, adelete = twins(_delete)
