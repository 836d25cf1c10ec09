"""Approvals: approve or reject jobs that await it.

await app.approvals.aapprove(job.id, by="ann")
"""

from mainspring.app import ids
from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.approvals import Approval
from mainspring.domain.filters import Several
from mainspring.domain.types import DEFAULT_TENANT, JobId, JobState, TenantId
from mainspring.services import approvals as services

# Inside the class `list` is one of its methods.
Open = list[Approval]


class Approvals(Namespace):
    """The jobs of an app that await approval: `app.approvals`."""

    async def aapprove(
        self,
        job_id: int,
        /,
        *,
        by: str | None = None,
        reason: str = "",
        tenant_id: str = DEFAULT_TENANT,
    ) -> JobState:
        """Approve as `by`, by default the database user; more approvals may be needed."""
        return await services.approve(
            self._app.database, TenantId(tenant_id), ids.job(job_id), reason=reason, actor=by
        )

    async def areject(
        self,
        job_id: int,
        /,
        *,
        reason: str,
        by: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> None:
        """Reject a job, which cancels it."""
        await services.reject(
            self._app.database, TenantId(tenant_id), ids.job(job_id), reason=reason, actor=by
        )

    async def aget(self, job_id: int, /, *, tenant_id: str = DEFAULT_TENANT) -> Approval:
        """The approval that a job asks for; raises ApprovalNotFound if it needs none."""
        return await services.get(self._app.database, TenantId(tenant_id), ids.job(job_id))

    async def alist(
        self,
        *,
        definition: Several[str] = None,
        tenant_id: str = DEFAULT_TENANT,
        after: int | None = None,
        limit: int = 100,
    ) -> Open:
        """Open approvals, longest waiting first; pass the last job id as `after` for the next
        page."""
        start = None if after is None else JobId(ids.number("after", after))
        return await services.list_open(
            self._app.database,
            TenantId(tenant_id),
            definition=definition,
            after=start,
            limit=limit,
        )

    approve = blocking(aapprove)
    reject = blocking(areject)
    get = blocking(aget)
    list = blocking(alist)
