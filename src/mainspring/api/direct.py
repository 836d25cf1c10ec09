"""Requests answered without a server: the endpoint is found, its parameters are read, it is called.

Does for one endpoint what FastAPI does for all of them, so that a command on a database imports
neither FastAPI nor the routes of other resources. `tests/api/test_direct.py` sends the same
requests both ways and compares the answers.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_type_hints
from urllib.parse import parse_qsl, urlsplit

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from mainspring.api import errors, routes
from mainspring.api.bodies import read_body
from mainspring.api.errors import Refused
from mainspring.api.field_names import with_hint
from mainspring.api.routing import (
    Depends,
    Parameter,
    Request,
    Response,
    Route,
    Source,
    takes_several,
    whole_names,
)
from mainspring.api.unknown_paths import PREFIX, no_such_path

_PLACEHOLDER = re.compile(r"\{(\w+)(:int)?\}")


class InvalidRequest(Exception):
    """Parameters that are wrong, as pydantic reports them."""

    def __init__(self, faults: list[Any]) -> None:
        super().__init__(faults)
        self.faults = faults


@dataclass(frozen=True, slots=True)
class DirectRequest:
    """A request that came over no network."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes
    state: SimpleNamespace
    cookies: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> Any:
        return urlsplit(self.target)

    @property
    def base_url(self) -> str:
        return str(self.state.public_url)

    @property
    def query_params(self) -> Mapping[str, str]:
        return dict(self.query)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.url.query, keep_blank_values=True)

    @property
    def app(self) -> Any:
        return SimpleNamespace(state=self.state)

    async def body(self) -> bytes:
        return self.content


async def answer(request: DirectRequest) -> Response:
    """What a server would answer."""
    try:
        route, found = _find(request)
        _ensure_known(request, route)
        if any(each.is_body for each in _inputs(route.endpoint)):
            # Before the caller is looked at, as FastAPI does it.
            _json(request.content)
        arguments = await _arguments(route.endpoint, request, found)
        response: Response = await route.endpoint(**arguments)
    except InvalidRequest as error:
        return errors.invalid(error.faults)
    except Exception as error:  # noqa: BLE001 - as a server does, which has to answer
        return errors.answer_of(error, request)
    return response


def _find(request: DirectRequest) -> tuple[Route, dict[str, str]]:
    path = whole_names(request.url.path).removeprefix(PREFIX)
    known = [each for router in routes.routers_of(path.split("/")[1]) for each in router.routes]
    for route in known:
        found = re.fullmatch(_pattern(route.path), path)
        if found is not None and route.method == request.method:
            return route, found.groupdict()
    fault = errors.wrong_id((route.path for route in known), path)
    if fault is not None:
        raise InvalidRequest([fault])
    said = no_such_path(f"{PREFIX}{path}", (route.path for route in known))
    raise Refused(HTTPStatus.NOT_FOUND, "no_such_path", said)


def _pattern(template: str) -> str:
    return _PLACEHOLDER.sub(lambda it: f"(?P<{it[1]}>{'[0-9]+' if it[2] else '[^/]+'})", template)


@dataclass(frozen=True, slots=True)
class _Input:
    """A parameter of a callable."""

    name: str
    hint: Any
    default: Any

    @property
    def details(self) -> tuple[Any, ...]:
        return getattr(self.hint, "__metadata__", ())

    @property
    def depends(self) -> Callable[..., Any] | None:
        found = next((each for each in self.details if isinstance(each, Depends)), None)
        return None if found is None else found.dependency or get_args(self.hint)[0]

    @property
    def is_body(self) -> bool:
        return any(isinstance(it, Parameter) and it.source is Source.BODY for it in self.details)

    @property
    def parameter(self) -> Parameter:
        found = (each for each in self.details if isinstance(each, Parameter))
        return next(found, Parameter(Source.QUERY))


@cache
def _inputs(call: Callable[..., Any]) -> tuple[_Input, ...]:
    source: Any = call
    if inspect.isclass(call):
        source = call.__init__
    elif not inspect.isfunction(call):
        source = type(call).__call__
    hints = get_type_hints(source, include_extras=True)
    parameters = inspect.signature(call).parameters
    return tuple(_Input(name, hints[name], each.default) for name, each in parameters.items())


def _ensure_known(request: DirectRequest, route: Route) -> None:
    errors.ensure_known([name for name, _ in request.query], dict(_query(route.endpoint)))


def _query(call: Callable[..., Any]) -> Iterator[tuple[str, bool]]:
    """The parameters of the query, and whether each may be given several times."""
    for each in _inputs(call):
        if each.depends is not None:
            yield from _query(each.depends)
        elif each.hint is not Request and each.parameter.source is Source.QUERY:
            yield each.parameter.alias or each.name, takes_several(each.hint)


async def _arguments(
    call: Callable[..., Any], request: DirectRequest, path: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of a call; what it depends on comes first, since that lets the caller in."""
    arguments: dict[str, Any] = {}
    faults: list[Any] = []
    inputs = _inputs(call)
    for each in inputs:
        if each.hint is Request:
            arguments[each.name] = request
        elif each.depends is not None:
            try:
                made = each.depends(**await _arguments(each.depends, request, path))
                arguments[each.name] = await made if inspect.isawaitable(made) else made
            except InvalidRequest as error:
                faults += error.faults
    own = [each for each in inputs if each.hint is not Request and each.depends is None]
    for each in sorted(own, key=lambda each: list(Source).index(each.parameter.source)):
        try:
            arguments[each.name] = _value(each, request, path)
        except InvalidRequest as error:
            faults += error.faults
    if faults:
        raise InvalidRequest(faults)
    return arguments


def _value(each: _Input, request: DirectRequest, path: Mapping[str, str]) -> Any:
    source, name = each.parameter.source, each.parameter.alias or each.name
    place = (source.value,) if source is Source.BODY else (source.value, name)
    given = path[name] if source is Source.PATH else _given(each, name, request)
    if given is None:
        if each.default is inspect.Parameter.empty:
            raise InvalidRequest([{"type": "missing", "loc": place, "msg": "Field required"}])
        return each.default
    try:
        return _adapter(each).validate_python(given, from_attributes=True)
    except ValidationError as error:
        raise InvalidRequest(
            [
                with_hint({**fault, "loc": (*place, *fault["loc"])}, each.hint)
                for fault in error.errors()
            ]
        ) from None


def _given(each: _Input, name: str, request: DirectRequest) -> Any:
    match each.parameter.source:
        case Source.QUERY:
            values = [value for key, value in request.query if key == name]
            return (values if takes_several(each.hint) else values[-1]) if values else None
        case Source.HEADER:
            return request.headers.get(name.lower())
        case _:
            return _json(request.content)


def _json(content: bytes) -> Any:
    try:
        return read_body(content) if content else None
    except orjson.JSONDecodeError:
        raise InvalidRequest([{"type": "json_invalid", "loc": ("body",), "msg": ""}]) from None


def _adapter(each: _Input) -> TypeAdapter[Any]:
    base, *details = get_args(each.hint) if each.details else (each.hint,)
    kept = [detail for detail in details if not isinstance(detail, Parameter)]
    whole: Any = Annotated[(base, *kept, Field(**each.parameter.constraints))]
    return TypeAdapter(whole)
