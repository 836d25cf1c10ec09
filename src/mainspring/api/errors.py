"""Every refusal in one shape, that of RFC 9457, with a code for programs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol

import orjson
import psycopg
from pydantic import Field
from pydantic_core import PydanticSerializationError

from mainspring.api.models.base import Answer, IdOut
from mainspring.api.routing import Response
from mainspring.domain.errors import (
    ConflictError,
    DuplicateJob,
    IdempotencyConflict,
    InputError,
    InvalidDefinition,
    InvalidEvent,
    InvalidOption,
    InvalidPayload,
    InvalidSchedule,
    InvalidTrigger,
    MainspringError,
    NotAnApprover,
    NotFoundError,
    PayloadTooLarge,
    UnknownDefinition,
)
from mainspring.domain.errors.access import Forbidden, Unauthenticated
from mainspring.domain.errors.database import DatabaseError, InsufficientRights
from mainspring.domain.plain_words import plain
from mainspring.domain.suggestions import did_you_mean

PROBLEM = "application/problem+json"
MOST_FAULTS = 20
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


_SOON = {"Retry-After": "1"}
_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.TOO_MANY_REQUESTS: _SOON,
    HTTPStatus.SERVICE_UNAVAILABLE: _SOON,
}


class Refused(Exception):
    """What only the API refuses, or words in another way."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.errors = status, code, detail, errors


class Problem(Answer):
    """An error: `detail` is for people, `code` for programs, `errors` says where in the request."""

    type: str = Field(description="Always about:blank; `code` says what went wrong.")
    title: str
    status: int
    code: str
    detail: str
    errors: list["Fault"] = Field(
        description="What is wrong with which part of the request; empty if none is to blame."
    )
    job_id: IdOut | None = Field(
        None, description="The job that has the dedupe key or the idempotency key already."
    )


class Fault(Answer):
    """An invalid part of a request."""

    path: str = Field(description="For example, body.priority or query.limit.")
    problem: str


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    job_id: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    from mainspring.domain.secrets.redaction import redact_patterns  # noqa: PLC0415 - slow to import

    facts: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "code": code,
        "detail": redact_patterns(detail),
        "errors": list(errors),
    }
    if job_id is not None:
        facts["job_id"] = str(job_id)
    return Response(orjson.dumps(facts), status.value, headers, PROBLEM)


_LOCKED = (
    "another request, a worker or a transaction in the database has kept locked what this request "
    "needs; try again"
)
_TOO_MUCH = (
    "the database stopped this request because it took too long; ask for less at a time, for "
    "example with narrower filters, or try again"
)
_TOO_DEEP = "the job holds a value that is nested too deeply to be sent; read it with SQL"


def status_of(error: MainspringError) -> HTTPStatus:
    found = (status for kind, status in _STATUSES if isinstance(error, kind))
    return next(found, HTTPStatus.UNPROCESSABLE_ENTITY)


class Asked(Protocol):
    """What a log line needs of a request."""

    @property
    def method(self) -> str: ...

    @property
    def url(self) -> Any: ...


def answer_of(error: Exception, request: Asked) -> Response:
    """The answer to a request that failed so."""
    match error:
        case MainspringError():
            return _ours(error, request)
        case Refused():
            return problem(
                error.status,
                error.code,
                error.detail,
                errors=error.errors,
                headers=_HEADERS.get(error.status),
            )
        case psycopg.Error():
            return _database(error, request)
    if _is_of_depth(error):
        return _ours(InvalidPayload(_TOO_DEEP), request)
    return _unexpected(error, request)


def _is_of_depth(error: Exception) -> bool:
    """Whether something that plain SQL has stored is nested too deeply to be read or answered."""
    is_unwritable = isinstance(error, PydanticSerializationError)
    return isinstance(error, RecursionError) or (is_unwritable and "depth exceeded" in str(error))


def invalid(faults: Sequence[Mapping[str, Any]]) -> Response:
    """The answer to a request whose parameters are wrong, as pydantic reports them."""
    shown = [_fault(each) for each in faults[:MOST_FAULTS]]
    detail = f"{shown[0]['path']}: {shown[0]['problem']}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", detail, errors=shown)


def ensure_known(given: Sequence[str], known: Mapping[str, bool]) -> None:
    """Refuse a parameter of the query that is misspelled, or repeated though it takes one value,
    rather than ignore it. `known` says of each whether it takes several."""
    faults = [
        {"path": f"query.{name}", "problem": _fault_of(name, given.count(name), known)}
        for name in dict.fromkeys(given)
        if name not in known or (given.count(name) > 1 and not known[name])
    ]
    if faults:
        detail = f"{faults[0]['path']}: {faults[0]['problem']}"
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        raise Refused(status, "invalid_request", detail, errors=faults[:MOST_FAULTS])


def _fault_of(name: str, count: int, known: Mapping[str, bool]) -> str:
    if name in known:
        return f"takes one value and is given {count} times; give it once"
    return f"is not a parameter of this request{did_you_mean(name, sorted(known))}"


def wrong_id(templates: Iterable[str], path: str) -> dict[str, Any] | None:
    """What is wrong with a path that would be one of these if its id were a number."""
    for template in templates:
        found = re.fullmatch(_PLACEHOLDER.sub(r"(?P<\1>[^/]+)", template), path)
        for name, text in found.groupdict().items() if found else ():
            if name.endswith("_id") and not re.fullmatch("[0-9]+", text):
                said = f"must be an id: a whole number, 1 or more, not {text[:40]!r}"
                return {"loc": ("path", name), "type": "value_error", "msg": said}
    return None


def _ours(error: MainspringError, request: Asked) -> Response:
    if isinstance(error, InsufficientRights):
        return _refused_by_database(error.reason, request)
    status = status_of(error)
    return problem(
        status,
        error.code,
        str(error),
        errors=_faults(error, "query" if request.method == "GET" else "body"),
        job_id=error.job_id if isinstance(error, DuplicateJob | IdempotencyConflict) else None,
        headers=_HEADERS.get(status),
    )


def _faults(error: MainspringError, source: str) -> list[dict[str, str]]:
    """The parts of the request that are wrong, as far as they are known."""
    parts: Sequence[tuple[str, str]] = ()
    match error:
        case InvalidPayload():
            parts = error.parts
        case InvalidOption():
            parts = [(error.option, error.problem)]
        case InvalidSchedule() | InvalidEvent() | InvalidTrigger():
            parts = [(error.field, error.problem)]
        case InvalidDefinition() if error.field is not None:
            parts = [(error.field, error.problem)]
        case UnknownDefinition():
            parts = [("definition", str(error))]
    return [
        {"path": f"{'query' if path == 'cursor' else source}.{path}", "problem": said}
        for path, said in parts[:MOST_FAULTS]
    ]


def _fault(each: Mapping[str, Any]) -> dict[str, str]:
    path = ".".join(str(part) for part in each["loc"])
    if each["type"] == "json_invalid":
        return {"path": "body", "problem": "is not valid JSON"}
    if each["type"] == "extra_forbidden":
        return {"path": path, "problem": f"is not a field of this request{each.get('hint', '')}"}
    said = plain(str(each["msg"]))
    if each["type"] == "enum":
        said += _hint(str(each.get("input")), each["loc"][1:2])
    return {"path": path, "problem": said}


def _hint(given: str, name: Sequence[object]) -> str:
    """Several values are no list in one: names may contain commas."""
    if "," not in given or not name:
        return ""
    repeated = "&".join(f"{name[0]}={each.strip()}" for each in given.split(",")[:3])
    return f"; for several values repeat the parameter: {repeated}"


def _refused_by_database(reason: str, request: Asked) -> Response:
    """Row-level security refused what the service let through: a hole in the checks above it."""
    from mainspring import telemetry  # noqa: PLC0415 - slow to import

    telemetry.event("row_security_refused", **_where(request), error=reason)
    return problem(
        HTTPStatus.FORBIDDEN, Forbidden.code, "you are not allowed to read or change this"
    )


def _database(error: psycopg.Error, request: Asked) -> Response:
    from mainspring import telemetry  # noqa: PLC0415 - slow to import
    from mainspring.db.outages import is_outage  # noqa: PLC0415 - slow to import

    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return _refused_by_database(str(error).partition("\n")[0], request)
    if (waited := _too_long(error)) is not None:
        return waited
    if isinstance(error, psycopg.OperationalError):
        detail = "the database is unavailable; try again shortly"
        if not is_outage(error):  # An outage is logged once, by the connections.
            telemetry.event("request_failed", **_where(request), error=error)
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "database_unreachable", detail, headers=_SOON
        )
    return _unexpected(error, request)


def _too_long(error: psycopg.Error) -> Response | None:
    """The answer to a request that waited for a lock, or was worked on, for too long."""
    match error:
        case psycopg.errors.LockNotAvailable():
            code, detail = "lock_timeout", _LOCKED
        case psycopg.errors.QueryCanceled():
            code, detail = "statement_timeout", _TOO_MUCH
        case _:
            return None
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, code, detail, headers=_SOON)


def _unexpected(error: Exception, request: Asked) -> Response:
    from mainspring import telemetry  # noqa: PLC0415 - slow to import

    telemetry.event("request_failed", **_where(request), error=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal_error",
        "internal error; see the server log",
    )


def _where(request: Asked) -> dict[str, str]:
    return {"method": request.method, "path": request.url.path}
