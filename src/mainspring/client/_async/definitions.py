"""`client.definitions`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.definitions import DefinitionModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, create, named


class Definitions(Resource):
    """Definitions: `client.definitions`."""

    def list(self, **filters: Any) -> AsyncIterator[DefinitionModel]:
        """Definitions by key; filter by `kind` and `is_active`."""
        return self._client.pages(Request("GET", "/definitions", filters), Page[DefinitionModel])

    async def get(self, key: str) -> DefinitionModel:
        """One definition, active or not."""
        return await self._client.call(
            Request("GET", f"/definitions/{named(key)}"), DefinitionModel
        )

    async def create(self, key: str, kind: str, **fields: Any) -> DefinitionModel:
        """Create a definition; `kind` is "sql", "command" or "remote"."""
        body = {"key": key, "kind": kind, **fields}
        return await self._client.call(create("/definitions", body), DefinitionModel)

    async def update(self, key: str, **changes: Any) -> DefinitionModel:
        """Update some fields. Jobs already enqueued run with the old values."""
        return await self._client.call(
            Request("PATCH", f"/definitions/{named(key)}", body=changes), DefinitionModel
        )

    async def activate(self, key: str) -> DefinitionModel:
        """Allow jobs to be enqueued again."""
        return await self._client.call(act(f"/definitions/{named(key)}/activate"), DefinitionModel)

    async def deactivate(self, key: str) -> DefinitionModel:
        """Refuse new jobs; those already enqueued still run."""
        return await self._client.call(
            act(f"/definitions/{named(key)}/deactivate"), DefinitionModel
        )
