"""Endpoints as they are declared: paths, parameters, dependencies and answers.

    routes/*.py ── Router ─┬─ api/asgi.py    the same endpoints in FastAPI, for a server
                           └─ api/direct.py  one endpoint at a time, for a command without a server

FastAPI takes longer to import than a short command may run, so routes are declared with these
names, which mean what FastAPI's mean.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin
from urllib.parse import unquote

_ESCAPED = re.compile("%2f|%25", re.IGNORECASE)

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Source(StrEnum):
    """Where a parameter is found in a request; errors are reported in this order."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where a parameter of an endpoint comes from, and what pydantic's Field knows of it."""

    source: Source
    alias: str | None = None
    description: str | None = None
    constraints: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return id(self)


def Path(*, description: str | None = None, **constraints: Any) -> Any:  # noqa: N802 - as FastAPI
    return Parameter(Source.PATH, None, description, constraints)


def Query(  # noqa: N802
    *, alias: str | None = None, description: str | None = None, **constraints: Any
) -> Any:
    return Parameter(Source.QUERY, alias, description, constraints)


def Header(*, alias: str, description: str | None = None, **constraints: Any) -> Any:  # noqa: N802
    return Parameter(Source.HEADER, alias, description, constraints)


def Body() -> Any:  # noqa: N802
    return Parameter(Source.BODY)


@dataclass(frozen=True, slots=True)
class Depends:
    """A parameter that another callable makes; the annotated class where none is given."""

    dependency: Callable[..., Any] | None = None


class Request(Protocol):
    """What endpoints may know of a request."""

    @property
    def method(self) -> str: ...

    @property
    def url(self) -> Any: ...

    @property
    def base_url(self) -> Any: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def cookies(self) -> Mapping[str, str]: ...

    @property
    def query_params(self) -> Mapping[str, str]: ...

    @property
    def app(self) -> Any: ...

    async def body(self) -> bytes: ...


class Response:
    """An answer."""

    def __init__(  # noqa: PLR0917 - as FastAPI
        self,
        content: bytes = b"",
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self.body, self.status_code = content, status_code
        self.headers, self.media_type = dict(headers or {}), media_type


class StreamingResponse(Response):
    """An answer whose parts are made one after the other."""

    def __init__(
        self,
        parts: AsyncIterator[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(b"", 200, headers, media_type)
        self.parts = parts


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint; `options` are for the description of the API."""

    method: str
    path: str
    endpoint: Callable[..., Any]
    options: Mapping[str, Any]


class Router:
    """The endpoints below one path."""

    def __init__(self, *, prefix: str = "", tags: Sequence[str] = ()) -> None:
        self.prefix, self.tags = prefix, list(tags)
        self.routes: list[Route] = []

    def get(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("POST", path, options)

    def put(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PUT", path, options)

    def patch(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PATCH", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("DELETE", path, options)

    def _add(
        self, method: str, path: str, options: Mapping[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            self.routes.append(Route(method, f"{self.prefix}{path}", endpoint, options))
            return endpoint

        return add


def takes_several(hint: Any) -> bool:
    """Whether a parameter of this type may be given several times."""
    if get_origin(hint) is Annotated or get_origin(hint) in (Union, UnionType):
        return any(takes_several(each) for each in get_args(hint))
    return hint is list or get_origin(hint) is list


def whole_names(raw_path: str) -> str:
    """A path in which an escaped slash stays escaped, since it belongs to a name and divides
    nothing, and with it the sign that escapes; `read_name` undoes both."""
    return unquote(_ESCAPED.sub(lambda found: "%25" + found[0][1:], raw_path))


def read_name(text: str) -> str:
    """A name as it is in a path of whole names."""
    return unquote(text) if "%" in text else text
