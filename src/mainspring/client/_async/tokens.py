"""`client.tokens`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.tokens import CreatedTokenModel, TokenModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, given, named


class Tokens(Resource):
    """API tokens: `client.tokens`."""

    def list(self, **filters: Any) -> AsyncIterator[TokenModel]:
        """Tokens by name; the active ones unless `state` says otherwise."""
        request = Request("GET", "/tokens", filters)
        return self._client.pages(request, Page[TokenModel])

    async def get(self, name: str) -> TokenModel:
        """One token, but not its text."""
        return await self._client.call(Request("GET", f"/tokens/{named(name)}"), TokenModel)

    async def create(self, name: str, role: str, **fields: Any) -> CreatedTokenModel:
        """Create a token; its text is shown only this once."""
        body = {"name": name, "role": role, **given(**fields)}
        return await self._client.call(Request("POST", "/tokens", body=body), CreatedTokenModel)

    async def revoke(self, name: str) -> TokenModel:
        """Revoke a token, from the next request on."""
        return await self._client.call(act(f"/tokens/{named(name)}/revoke"), TokenModel)
