"""Every refusal in one shape, that of RFC 9457, with a code for programs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
import psycopg
from pydantic import Field
from pydantic_core import PydanticSerializationError

from mainspring.api.models.base import Answer
from mainspring.api.routing import Response
from mainspring.domain.errors import (
    ConflictError,
    InputError,
    InvalidPayload,
    MainspringError,
    NotAnApprover,
    NotFoundError,
    PayloadTooLarge,
)
from mainspring.domain.errors.access import Forbidden, Unauthenticated
from mainspring.domain.errors.database import DatabaseError, InsufficientRights

PROBLEM = "application/problem+json"
_PLACEHOLDER = re.compile(r"\{(\w+)(?::int)?\}")

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


class Refused(Exception):
    """What only the API refuses, or words in another way."""

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class Problem(Answer):
    """An error: `detail` is for people, `code` for programs, `errors` says where in the request."""

    type: str = Field(description="Always about:blank; `code` says what went wrong.")
    title: str
    status: int
    code: str
    detail: str
    errors: list["Fault"] | None = None


class Fault(Answer):
    """An invalid part of a request."""

    path: str = Field(description="For example, body.priority or query.limit.")
    problem: str


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    from mainspring.domain.secrets.redaction import redact_patterns  # noqa: PLC0415 - slow to import

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


_TOO_DEEP = "the job holds a value that is nested too deeply to be sent; read it with SQL"


def status_of(error: MainspringError) -> HTTPStatus:
    found = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(found, HTTPStatus.UNPROCESSABLE_ENTITY)


def answer_of(error: Exception) -> Response:
    """The answer to a request that failed so."""
    match error:
        case MainspringError():
            return _ours(error)
        case Refused():
            return problem(error.status, error.code, error.detail)
        case psycopg.Error():
            return _database(error)
    if _is_of_depth(error):
        return _ours(InvalidPayload(_TOO_DEEP))
    return _unexpected(error)


def _is_of_depth(error: Exception) -> bool:
    """Whether something that plain SQL has stored is nested too deeply to be read or answered."""
    is_unwritable = isinstance(error, PydanticSerializationError)
    return isinstance(error, RecursionError) or (is_unwritable and "depth exceeded" in str(error))


def invalid(faults: Sequence[Mapping[str, Any]]) -> Response:
    """The answer to a request whose parameters are wrong, as pydantic reports them."""
    shown = [_fault(each) for each in faults[:20]]
    detail = f"{shown[0]['path']}: {shown[0]['problem']}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", detail, errors=shown)


def wrong_id(templates: Iterable[str], path: str) -> dict[str, Any] | None:
    """What is wrong with a path that would be one of these if its id were a number."""
    for template in templates:
        found = re.fullmatch(_PLACEHOLDER.sub(r"(?P<\1>[^/]+)", template), path)
        for name, text in found.groupdict().items() if found else ():
            if name.endswith("_id") and not re.fullmatch("[0-9]+", text):
                said = f"must be an id: a whole number, 1 or more, not {text[:40]!r}"
                return {"loc": ("path", name), "type": "value_error", "msg": said}
    return None


def _ours(error: MainspringError) -> Response:
    if isinstance(error, InsufficientRights):
        return _refused_by_database(error.reason)
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
    return problem(status, error.code, str(error), headers=headers)


def _fault(each: Mapping[str, Any]) -> dict[str, str]:
    path = ".".join(str(part) for part in each["loc"])
    if each["type"] == "json_invalid":
        return {"path": "body", "problem": "is not valid JSON"}
    if each["type"] == "extra_forbidden":
        return {"path": path, "problem": "is not a field of this request"}
    return {"path": path, "problem": _plain(str(each["msg"]))}


# As pydantic says it, and as a person would.
_WORDS = {
    r"^Value error, ": "",
    r"^\w+ should ": "must ",
    r"a valid dictionary( or object to extract fields from)?": "a JSON object",
    r"a valid list": "a JSON list",
    r"a valid integer, unable to parse string as an integer": "a whole number",
    r"a valid integer, got a number with a fractional part": "a whole number",
    r"a valid integer": "a whole number",
    r"a valid number, unable to parse string as a number": "a number",
    r"a valid boolean, unable to interpret input": "true or false",
    r"a valid boolean": "true or false",
    r"a valid ": "a ",
    r"greater than or equal to (\S+)": r"\1 or more",
    r"less than or equal to (\S+)": r"\1 or less",
    r"^Field required": "is missing",
}


def _plain(problem: str) -> str:
    for technical, plain in _WORDS.items():
        problem = re.sub(technical, plain, problem)
    return problem


def _refused_by_database(reason: str) -> Response:
    """Row-level security refused what the service let through: a hole in the checks above it."""
    from mainspring import telemetry  # noqa: PLC0415 - slow to import

    telemetry.event("row_security_refused", error=reason)
    return problem(
        HTTPStatus.FORBIDDEN, Forbidden.code, "you are not allowed to read or change this"
    )


def _database(error: psycopg.Error) -> Response:
    from mainspring import telemetry  # noqa: PLC0415 - slow to import

    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return _refused_by_database(str(error).partition("\n")[0])
    if isinstance(error, psycopg.OperationalError):
        detail = "the database is unavailable; try again shortly"
        telemetry.event("database_lost", error=str(error).partition("\n")[0])
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "database_unreachable", detail, headers=_SOON
        )
    return _unexpected(error)


_SOON = {"Retry-After": "1"}


def _unexpected(error: Exception) -> Response:
    from mainspring import telemetry  # noqa: PLC0415 - slow to import

    telemetry.event("request_failed", error=repr(error))
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal_error",
        "internal error; see the server log",
    )
