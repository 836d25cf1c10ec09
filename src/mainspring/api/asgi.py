"""Endpoints and errors in FastAPI: its parameters for ours, its answers for ours."""

import inspect
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import fastapi
import psycopg
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from mainspring.api import errors, routes, routing
from mainspring.api.field_names import with_hint
from mainspring.api.requests import JsonRoute
from mainspring.api.routing import Depends, Parameter, Router, Source
from mainspring.api.unknown_paths import PREFIX, no_such_method, no_such_path
from mainspring.db.outages import OUTAGES, is_outage
from mainspring.domain.errors import MainspringError

_CONVERTER = re.compile(r":\w+\}")

_SOURCES: dict[Source, Callable[..., Any]] = {
    Source.PATH: fastapi.Path,
    Source.QUERY: fastapi.Query,
    Source.HEADER: fastapi.Header,
    Source.BODY: fastapi.Body,
}

_CODES = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.NOT_FOUND: "no_such_path",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
}


def make_router(router: Router) -> fastapi.APIRouter:
    """The same router for FastAPI."""
    made = fastapi.APIRouter(tags=list(router.tags), route_class=JsonRoute)
    for route in router.routes:
        options = dict(route.options)
        if options.get("response_class") is routing.Response:
            options["response_class"] = fastapi.Response
        made.add_api_route(
            route.path,
            _endpoint(route.endpoint),
            methods=[route.method],
            operation_id=route.endpoint.__name__,
            **options,
        )
    return made


class _Streaming(StreamingResponse):
    """Ends its parts also if the client leaves while one is sent."""

    async def stream_response(self, send: Any) -> None:
        try:
            await super().stream_response(send)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


def as_starlette(answer: routing.Response) -> fastapi.Response:
    """The answer as FastAPI sends it."""
    if isinstance(answer, routing.StreamingResponse):
        return _Streaming(answer.parts, media_type=answer.media_type, headers=answer.headers)
    return fastapi.Response(answer.body, answer.status_code, answer.headers, answer.media_type)


def _endpoint(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    async def run(**arguments: Any) -> fastapi.Response:
        return as_starlette(await endpoint(**arguments))

    return _dressed(run, endpoint)


@cache
def _dependency(call: Callable[..., Any]) -> Callable[..., Any]:
    async def run(**arguments: Any) -> Any:
        made = call(**arguments)
        return await made if inspect.isawaitable(made) else made

    return _dressed(run, call)


def _dressed(run: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """With the name, the text and the parameters of the original, as FastAPI reads them."""
    hints = get_type_hints(annotated(original), include_extras=True)
    parameters = [
        parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=_annotation(hints[parameter.name])
        )
        for parameter in inspect.signature(original).parameters.values()
    ]
    run.__name__ = getattr(original, "__name__", type(original).__name__)
    run.__doc__ = original.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def annotated(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose annotations are those of the call."""
    if inspect.isclass(call):
        return call.__init__
    return call if inspect.isfunction(call) else type(call).__call__


def _annotation(hint: Any) -> Any:
    if hint is routing.Request:
        return fastapi.Request
    if get_origin(hint) is not Annotated:
        return hint
    base, *details = get_args(hint)
    return Annotated[(base, *(_detail(base, detail) for detail in details))]


def _detail(base: Any, detail: Any) -> Any:
    match detail:
        case Depends(dependency):
            return fastapi.Depends(_dependency(dependency or base))
        case Parameter(source, alias, description, constraints):
            if source is Source.BODY:
                _build(base)
            given = {"alias": alias, "description": description}
            known = {name: value for name, value in given.items() if value is not None}
            return _SOURCES[source](**known, **constraints)
    return detail


def _build(body: Any) -> None:
    """Build the model of a body now: FastAPI would build it later, outside of the block in which it
    suppresses pydantic's warnings about its own parameters."""
    if hasattr(body, "model_config"):
        body.model_config["defer_build"] = False
        body.model_rebuild()


def install_errors(app: fastapi.FastAPI) -> None:
    """Answer every error in the shape of `api.errors`."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in (MainspringError, errors.Refused, psycopg.Error, Exception):
        app.add_exception_handler(kind, _failed)


async def _failed(request: fastapi.Request, error: Exception) -> fastapi.Response:
    if is_outage(error):
        OUTAGES.unreachable(request.app.state.server.database.url, "mainspring server", error)
    return as_starlette(errors.answer_of(error, request))


async def _invalid(request: fastapi.Request, error: Exception) -> fastapi.Response:
    if not isinstance(error, RequestValidationError):
        raise error
    body = getattr(request.scope.get("route"), "body_field", None)
    hint = None if body is None else body.field_info.annotation
    return as_starlette(errors.invalid([with_hint(fault, hint) for fault in error.errors()]))


async def _http(request: fastapi.Request, error: Exception) -> fastapi.Response:
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    code = _CODES.get(status, "bad_request")
    if status is HTTPStatus.NOT_FOUND:
        fault = errors.wrong_id(_templates(), _path(request))
        if fault is not None:
            return as_starlette(errors.invalid([fault]))
    headers, detail = dict(error.headers or {}), str(error.detail)
    if status is HTTPStatus.NOT_FOUND:
        detail = no_such_path(_whole_path(request), _templates())
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names the methods of the first endpoint of the path alone.
        methods = _methods(request) or set(headers.get("Allow", "").split(", "))
        headers["Allow"] = ", ".join(sorted(methods))
        detail = no_such_method(request.method, _whole_path(request), methods)
    return as_starlette(errors.problem(status, code, detail, headers=headers))


def _methods(request: fastapi.Request) -> set[str]:
    """The methods that the path of a request has."""
    path = _path(request)
    return {
        method
        for template, methods in _templates().items()
        if re.fullmatch(_pattern(template), path)
        for method in methods
    }


@cache
def _templates() -> Mapping[str, set[str]]:
    """The paths that there are, and the methods of each. Not of the OpenAPI document: that takes
    most of a second to make, and nobody has asked for it."""
    found: dict[str, set[str]] = defaultdict(set)
    for router in routes.all_routers():
        for route in router.routes:
            found[_CONVERTER.sub("}", route.path)].add(route.method)
    return found


def _path(request: fastapi.Request) -> str:
    """Below the prefix of the API."""
    return _whole_path(request).removeprefix(PREFIX)


def _whole_path(request: fastapi.Request) -> str:
    """Below what the server is mounted at."""
    return str(request.scope["path"].removeprefix(request.scope.get("root_path", "")))


def _pattern(template: str) -> str:
    return re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+_id\}", "[0-9]+", template))
