"""`client.definitions`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.definitions import DefinitionModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, act, create, named


class Definitions(Resource):
    """`client.definitions`."""

    def list(self, **filters: Any) -> Iterator[DefinitionModel]:
        return self._client.pages(Request("GET", "/definitions", filters), Page[DefinitionModel])

    def get(self, key: str) -> DefinitionModel:
        return self._client.call(Request("GET", f"/definitions/{named(key)}"), DefinitionModel)

    def create(self, key: str, kind: str, **fields: Any) -> DefinitionModel:
        body = {"key": key, "kind": kind, **fields}
        return self._client.call(create("/definitions", body), DefinitionModel)

    def update(self, key: str, **changes: Any) -> DefinitionModel:
        return self._client.call(
            Request("PATCH", f"/definitions/{named(key)}", body=changes), DefinitionModel
        )

    def activate(self, key: str) -> DefinitionModel:
        return self._client.call(act(f"/definitions/{named(key)}/activate"), DefinitionModel)

    def deactivate(self, key: str) -> DefinitionModel:
        return self._client.call(act(f"/definitions/{named(key)}/deactivate"), DefinitionModel)
