"""`client.approvals`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.approvals import ApprovalModel
from mainspring.api.models.base import Page
from mainspring.api.models.jobs import StateModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, given


class Approvals(Resource):
    """Jobs that await approval: `client.approvals`."""

    def list(self, **filters: Any) -> AsyncIterator[ApprovalModel]:
        """Jobs that await approval, longest waiting first."""
        return self._client.pages(Request("GET", "/approvals", filters), Page[ApprovalModel])

    async def get(self, job_id: int) -> ApprovalModel:
        """The approval that a job asks for, with the votes so far."""
        return await self._client.call(Request("GET", f"/approvals/{job_id}"), ApprovalModel)

    async def approve(self, job_id: int, reason: str = "", *, by: str | None = None) -> StateModel:
        """Approve a job; an operator may do so on behalf of someone else."""
        body = {"reason": reason, **given(by=by)}
        return await self._client.call(act(f"/jobs/{job_id}/approve", body), StateModel)

    async def reject(self, job_id: int, reason: str, *, by: str | None = None) -> StateModel:
        """Reject a job, which cancels it; an operator may do so on behalf of someone else."""
        body = {"reason": reason, **given(by=by)}
        return await self._client.call(act(f"/jobs/{job_id}/reject", body), StateModel)
