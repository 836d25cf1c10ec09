"""`client.processes`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.processes import ProcessModel, StatusModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request


class Processes(Resource):
    """Long-running processes: `client.processes`."""

    def list(self, **filters: Any) -> Iterator[ProcessModel]:
        """Processes, newest first; `kind` is worker, scheduler or server."""
        return self._client.pages(Request("GET", "/processes", filters), Page[ProcessModel])

    def status(self) -> StatusModel:
        """What all processes do together; for operators."""
        return self._client.call(Request("GET", "/status"), StatusModel)
