"""`client.errors`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.error_groups import ErrorGroupDetailsModel, ErrorGroupModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, named


class Errors(Resource):
    """Errors: `client.errors`."""

    def list(self, **filters: Any) -> AsyncIterator[ErrorGroupModel]:
        """What fails, grouped: new errors first, then those with the most failures."""
        return self._client.pages(Request("GET", "/errors", filters), Page[ErrorGroupModel])

    async def get(self, key: str) -> ErrorGroupDetailsModel:
        """One error with its failures by day."""
        return await self._client.call(
            Request("GET", f"/errors/{named(key)}"), ErrorGroupDetailsModel
        )
