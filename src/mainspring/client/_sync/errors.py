"""`client.errors`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.error_groups import ErrorGroupDetailsModel, ErrorGroupModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, named


class Errors(Resource):
    """Errors: `client.errors`."""

    def list(self, **filters: Any) -> Iterator[ErrorGroupModel]:
        """What fails, grouped: new errors first, then those with the most failures."""
        return self._client.pages(Request("GET", "/errors", filters), Page[ErrorGroupModel])

    def get(self, key: str) -> ErrorGroupDetailsModel:
        """One error with its failures by day."""
        return self._client.call(Request("GET", f"/errors/{named(key)}"), ErrorGroupDetailsModel)
