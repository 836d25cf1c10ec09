"""`client.jobs`."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.jobs import (
    AttemptModel,
    EnqueuedManyModel,
    EnqueuedModel,
    JobModel,
    JobSummaryModel,
    StateModel,
    SummaryModel,
)
from mainspring.api.models.operations import BulkModel
from mainspring.api.models.streams import WatchedModel
from mainspring.api.models.why import WhyModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, create, given, new_key, operation, read_as


class Jobs(Resource):
    """Jobs: `client.jobs`."""

    async def enqueue(
        self,
        definition: str,
        payload: dict[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> EnqueuedModel:
        """Enqueue a job. It gets an idempotency key, so the request can be repeated if the
        response is lost."""
        body = {"definition": definition, **given(payload=payload, **options)}
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        request = Request("POST", "/jobs", body=body, headers=headers, is_safe=True)
        return await self._client.call(request, EnqueuedModel)

    async def enqueue_many(
        self, definition: str, payloads: Sequence[dict[str, Any]], **options: Any
    ) -> EnqueuedManyModel:
        """Enqueue jobs of one definition together: all or none."""
        body = {"definition": definition, "payloads": list(payloads), **given(**options)}
        return await self._client.call(create("/jobs/many", body), EnqueuedManyModel)

    def list(self, *, limit: int = 100, **filters: Any) -> AsyncIterator[JobSummaryModel]:
        """All matching jobs in short, newest first; `limit` is the page size, `include` what to
        add, such as `["payload", "result"]`. A filter takes a value or a list of alternatives."""
        request = Request("GET", "/jobs", {**filters, "limit": limit})
        return self._client.pages(request, Page[JobSummaryModel])

    async def page(
        self, *, limit: int = 50, cursor: str | None = None, **filters: Any
    ) -> Page[JobSummaryModel]:
        """One page of the list; pass its `next_cursor` as `cursor` for the next one."""
        params = {**filters, "limit": limit, "cursor": cursor}
        return await self._client.call(Request("GET", "/jobs", params), Page[JobSummaryModel])

    async def get(self, job_id: int) -> JobModel:
        """One job, live or finished, with its payload and result."""
        return await self._client.call(Request("GET", f"/jobs/{job_id}"), JobModel)

    async def attempts(self, job_id: int) -> Sequence[AttemptModel]:
        """The attempts of a job, first to last."""
        request = Request("GET", f"/jobs/{job_id}/attempts", {"limit": 1000})
        return [each async for each in self._client.pages(request, Page[AttemptModel])]

    async def why(self, job_id: int) -> WhyModel:
        """Why a job does not run, or what it does."""
        return await self._client.call(Request("GET", f"/jobs/{job_id}/why"), WhyModel)

    async def cancel(self, job_id: int, reason: str = "") -> StateModel:
        """Cancel a job; returns running if it was asked to stop."""
        return await self._client.call(
            act(f"/jobs/{job_id}/cancel", {"reason": reason}), StateModel
        )

    async def retry(self, job_id: int, payload: dict[str, Any] | None = None) -> StateModel:
        """Retry a failed, dead-lettered or canceled job."""
        body = given(payload=payload)
        return await self._client.call(
            Request("POST", f"/jobs/{job_id}/retry", body=body), StateModel
        )

    async def delete(self, job_id: int) -> None:
        """Delete a job that is not running, with its attempts."""
        await self._client.send(Request("DELETE", f"/jobs/{job_id}"))

    async def bulk(self, action: str, *, dry_run: bool = False, **options: Any) -> BulkModel:
        """Cancel, retry or delete all matching jobs; a dry run counts them."""
        return await self._client.call(operation(action, options, dry_run=dry_run), BulkModel)

    async def summary(self, *, tenant: str | None = None) -> SummaryModel:
        """The number of jobs in each state; `today` counts those that finished since midnight
        UTC."""
        return await self._client.call(
            Request("GET", "/jobs/summary", given(tenant=tenant)), SummaryModel
        )

    async def watch(
        self, *, limit: int = 50, **filters: Any
    ) -> AsyncIterator[Page[JobSummaryModel]]:
        """The first page of a job list, each time it changes."""
        async for name, data in self._client.listen("/jobs/stream", {**filters, "limit": limit}):
            if name == "jobs":
                yield read_as(Page[JobSummaryModel], data)

    async def follow(self, job_id: int) -> AsyncIterator[WatchedModel]:
        """The job, each time it changes, until it has finished."""
        async for name, data in self._client.listen(f"/jobs/{job_id}/stream"):
            if name == "job":
                yield read_as(WatchedModel, data)
