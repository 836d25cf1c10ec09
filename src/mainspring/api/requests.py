"""What a request may hold: bodies are JSON, and no parameter is left unread."""

from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

import orjson
from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from mainspring.api.bodies import read_body
from mainspring.api.errors import ensure_known
from mainspring.api.routing import takes_several

Scope: TypeAlias = MutableMapping[str, Any]


class _JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = read_body(await self.body())
        return self._json


def _as_json(scope: Scope) -> Scope:
    """Every body is JSON, whatever a client such as curl says of it by default."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", b"application/json")]}


class JsonRoute(APIRoute):
    """An endpoint whose bodies are read so."""

    def get_route_handler(self) -> Any:
        handle = super().get_route_handler()
        known = _query(self.dependant)

        async def handle_json(request: Request) -> Response:
            ensure_known([name for name, _ in request.query_params.multi_items()], known)
            asked = _JsonRequest(_as_json(request.scope), request.receive)
            # Whatever is wrong with reading it is told as what it is, not as bad JSON.
            if await asked.body():
                with suppress(orjson.JSONDecodeError):
                    await asked.json()
            return await handle(asked)

        return handle_json


def _query(dependant: Dependant) -> dict[str, bool]:
    """The parameters of the query, and whether each may be given several times."""
    known = {
        field.alias: takes_several(field.field_info.annotation) for field in dependant.query_params
    }
    for each in dependant.dependencies:
        known |= _query(each)
    return known
