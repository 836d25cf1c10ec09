"""`client.tokens`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.tokens import CreatedTokenModel, TokenModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, act, given, named


class Tokens(Resource):
    """API tokens: `client.tokens`."""

    def list(self, **filters: Any) -> Iterator[TokenModel]:
        """Tokens by name; the active ones unless `state` says otherwise."""
        request = Request("GET", "/tokens", filters)
        return self._client.pages(request, Page[TokenModel])

    def get(self, name: str) -> TokenModel:
        """One token, but not its text."""
        return self._client.call(Request("GET", f"/tokens/{named(name)}"), TokenModel)

    def create(self, name: str, role: str, **fields: Any) -> CreatedTokenModel:
        """Create a token; its text is shown only this once."""
        body = {"name": name, "role": role, **given(**fields)}
        return self._client.call(Request("POST", "/tokens", body=body), CreatedTokenModel)

    def revoke(self, name: str) -> TokenModel:
        """Revoke a token, from the next request on."""
        return self._client.call(act(f"/tokens/{named(name)}/revoke"), TokenModel)
