"""`client.processes`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.processes import ProcessModel, StatusModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request


class Processes(Resource):
    """Long-running processes: `client.processes`."""

    def list(self, **filters: Any) -> AsyncIterator[ProcessModel]:
        """Processes, newest first; `kind` is worker, scheduler or server."""
        return self._client.pages(Request("GET", "/processes", filters), Page[ProcessModel])

    async def status(self) -> StatusModel:
        """What all processes do together; for operators."""
        return await self._client.call(Request("GET", "/status"), StatusModel)
