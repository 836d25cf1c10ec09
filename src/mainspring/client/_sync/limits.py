"""`client.limits`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.limits import LimitModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, given, named


class Limits(Resource):
    """Limits: `client.limits`."""

    def list(self, **filters: Any) -> Iterator[LimitModel]:
        """Limits by name."""
        return self._client.pages(Request("GET", "/limits", filters), Page[LimitModel])

    def get(self, name: str) -> LimitModel:
        """One limit with the number of its running and waiting jobs."""
        return self._client.call(Request("GET", f"/limits/{named(name)}"), LimitModel)

    def set(self, name: str, **fields: Any) -> LimitModel:
        """Set what a limit allows; omitted arguments are unlimited."""
        return self._client.call(
            Request("PUT", f"/limits/{named(name)}", body=given(**fields)), LimitModel
        )

    def remove(self, name: str) -> None:
        """Remove a limit; jobs that wait for it become ready."""
        self._client.send(Request("DELETE", f"/limits/{named(name)}"))
