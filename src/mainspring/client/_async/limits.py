"""`client.limits`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.limits import LimitModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, given, named


class Limits(Resource):
    """Limits: `client.limits`."""

    def list(self, **filters: Any) -> AsyncIterator[LimitModel]:
        """Limits by name."""
        return self._client.pages(Request("GET", "/limits", filters), Page[LimitModel])

    async def get(self, name: str) -> LimitModel:
        """One limit with the number of its running and waiting jobs."""
        return await self._client.call(Request("GET", f"/limits/{named(name)}"), LimitModel)

    async def set(self, name: str, **fields: Any) -> LimitModel:
        """Set what a limit allows; omitted arguments are unlimited."""
        return await self._client.call(
            Request("PUT", f"/limits/{named(name)}", body=given(**fields)), LimitModel
        )

    async def remove(self, name: str) -> None:
        """Remove a limit; jobs that wait for it become ready."""
        await self._client.send(Request("DELETE", f"/limits/{named(name)}"))
