"""`client.flows`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.flows import CountModel, FlowJobModel, FlowModel, StartedModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, create


class Flows(Resource):
    """Flows: `client.flows`."""

    async def start(self, name: str, steps: Sequence[Mapping[str, Any]]) -> StartedModel:
        """Enqueue jobs that wait for each other: each has a name, `step`, and may come `after`
        others."""
        return await self._client.call(
            create("/flows", {"name": name, "steps": steps}), StartedModel
        )

    def list(self, **filters: Any) -> AsyncIterator[FlowModel]:
        """Flows, newest first."""
        return self._client.pages(Request("GET", "/flows", filters), Page[FlowModel])

    async def get(self, flow_id: int) -> FlowModel:
        """A flow with the number of its jobs in each state."""
        return await self._client.call(Request("GET", f"/flows/{flow_id}"), FlowModel)

    def jobs(self, flow_id: int, *, limit: int = 100) -> AsyncIterator[FlowJobModel]:
        """The jobs of a flow in the order they were enqueued; `limit` is the page size."""
        request = Request("GET", f"/flows/{flow_id}/jobs", {"limit": limit})
        return self._client.pages(request, Page[FlowJobModel])

    async def cancel(self, flow_id: int, reason: str = "") -> CountModel:
        """Cancel the live jobs of a flow; returns how many there were."""
        return await self._client.call(
            act(f"/flows/{flow_id}/cancel", {"reason": reason}), CountModel
        )

    async def retry(self, flow_id: int) -> CountModel:
        """Retry the failed and canceled jobs of a flow; returns how many there were."""
        return await self._client.call(Request("POST", f"/flows/{flow_id}/retry"), CountModel)
