"""Every refusal in one shape, that of RFC 9457, with a code for programs."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException

from mainspring import telemetry
from mainspring.api.models.base import Answer
from mainspring.domain.errors import (
    ConflictError,
    InputError,
    MainspringError,
    NotAnApprover,
    NotFoundError,
    PayloadTooLarge,
)
from mainspring.domain.errors.access import Forbidden, Unauthenticated
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.secrets.redaction import redact_patterns

PROBLEM = "application/problem+json"

_STATUSES: tuple[tuple[type[MainspringError], HTTPStatus], ...] = (
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotAnApprover, HTTPStatus.FORBIDDEN),
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (PayloadTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (ConflictError, HTTPStatus.CONFLICT),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (DatabaseError, HTTPStatus.SERVICE_UNAVAILABLE),
)
_CODES = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.NOT_FOUND: "no_such_path",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
}


class Refused(Exception):
    """What only the API refuses, or words in another way."""

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class Problem(Answer):
    """What went wrong: `detail` for people, `code` for programs, `errors` where in the request."""

    type: str = Field(description="Always about:blank; the code tells what it is.")
    title: str
    status: int
    code: str
    detail: str
    errors: list["Fault"] | None = None


class Fault(Answer):
    """One part of a request that is wrong."""

    path: str = Field(description="Such as body.priority or query.limit.")
    problem: str


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    facts: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "code": code,
        "detail": redact_patterns(detail),
    }
    if errors is not None:
        facts["errors"] = errors
    return Response(orjson.dumps(facts), status.value, headers, PROBLEM)


def status_of(error: MainspringError) -> HTTPStatus:
    found = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(found, HTTPStatus.UNPROCESSABLE_ENTITY)


def install(app: FastAPI) -> None:
    app.add_exception_handler(MainspringError, _ours)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(psycopg.Error, _database)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(_: Request, error: Exception) -> Response:
    if not isinstance(error, MainspringError):
        raise error
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return problem(status, error.code, str(error), headers=headers)


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, Refused):
        raise error
    return problem(error.status, error.code, error.detail)


async def _invalid(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    faults = [_fault(each) for each in error.errors()[:20]]
    first = faults[0]
    detail = f"{first['path']}: {first['problem']}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", detail, errors=faults)


def _fault(each: Mapping[str, Any]) -> dict[str, str]:
    path = ".".join(str(part) for part in each["loc"])
    if each["type"] == "json_invalid":
        return {"path": "body", "problem": "is not JSON"}
    if each["type"] == "extra_forbidden":
        return {"path": path, "problem": "is no field of this request"}
    said = str(each["msg"]).removeprefix("Value error, ")
    return {"path": path, "problem": said}


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    code = _CODES.get(status, "bad_request")
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names the methods of the first endpoint of the path alone.
        headers["Allow"] = ", ".join(sorted(_methods(request))) or headers.get("Allow", "")
    return problem(status, code, str(error.detail), headers=headers)


def _methods(request: Request) -> set[str]:
    """The methods that the path of a request has."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return {
        method.upper()
        for template, methods in request.app.openapi()["paths"].items()
        if re.fullmatch(_pattern(template), path)
        for method in methods
    }


def _pattern(template: str) -> str:
    return re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+_id\}", "[0-9]+", template))


async def _database(_: Request, error: Exception) -> Response:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        # The second wall; whoever gets here has found a hole in the first.
        telemetry.event("wall_held", error=str(error).partition("\n")[0])
        return problem(HTTPStatus.FORBIDDEN, Forbidden.code, "this is not yours to see or change")
    if isinstance(error, psycopg.OperationalError):
        detail = "the database does not answer; try again shortly"
        telemetry.event("database_lost", error=str(error).partition("\n")[0])
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "database_unreachable", detail, headers=_SOON
        )
    return await _unexpected(_, error)


_SOON = {"Retry-After": "1"}


async def _unexpected(_: Request, error: Exception) -> Response:
    telemetry.event("request_failed", error=repr(error))
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal_error",
        "something went wrong here; the server's log says what",
    )
