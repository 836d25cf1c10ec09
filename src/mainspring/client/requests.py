"""What both clients share: requests, answers, errors, and which requests may be repeated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import orjson

from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.client import ApiError, ServerUnreachable

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")

TRIES = 4
PREFIX = "/api/v1"
_BUSY = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 5.0
_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})


class TransportError(Exception):
    """No response arrived; the request may or may not have been carried out."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `is_safe` if sending it twice does no more than sending it once. `patience` is
    how many seconds the answer may take beyond the client's timeout."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_safe: bool = False
    patience: float = 0.0

    @property
    def may_repeat(self) -> bool:
        return self.is_safe or self.method in _IDEMPOTENT


@dataclass(frozen=True, slots=True)
class Message:
    """A request as a transport sends it; `target` is the path with the query string."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes | None
    timeout: float


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a server; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return is_success(self.status)


def is_success(status: int) -> bool:
    return 200 <= status < 300


def encode(request: Request, *, token: str, tenant: str | None, timeout: float) -> Message:
    """The message for a request of the holder of the token."""
    params = {**given(tenant=tenant), **given(**request.params)}
    query = urlencode({name: _text(value) for name, value in params.items()}, doseq=True)
    content = None if request.body is None else orjson.dumps(plain(request.body))
    kind = {} if content is None else {"Content-Type": "application/json"}
    return Message(
        request.method,
        f"{PREFIX}{request.path}{f'?{query}' if query else ''}",
        {"Authorization": f"Bearer {token}", **request.headers, **kind},
        content,
        timeout + request.patience,
    )


def plain(value: Any) -> Any:
    """A body as JSON: durations become seconds."""
    match value:
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(each) for each in value]
    return value


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _text(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case Enum():
            return str(value.value)
        case list() | tuple() | set() | frozenset():
            return [_text(each) for each in value]
    return value


def named(name: str) -> str:
    """A name as one segment of a path, whatever it contains."""
    if not name:
        raise InvalidOption("name", "must not be empty")
    return quote(name, safe="").replace(".", "%2E")


def create(path: str, body: Any) -> Request:
    """A create with an idempotency key, so that it can be repeated when the answer is lost."""
    return Request("POST", path, body=body, headers={"Idempotency-Key": new_key()}, is_safe=True)


def operation(action: str, options: Mapping[str, Any], *, dry_run: bool) -> Request:
    """A bulk operation; every option besides `all` and `reason` is a filter."""
    filters = given(**options)
    body: dict[str, Any] = {"action": action, "filter": filters, "dry_run": dry_run}
    for name in ("all", "reason"):
        if name in filters:
            body[name] = filters.pop(name)
    return create("/jobs/bulk", body)


def act(path: str, body: Any = None) -> Request:
    """An action that has no further effect when it is repeated."""
    return Request("POST", path, body=body, is_safe=True)


def new_key() -> str:
    """An idempotency key for one create."""
    import uuid  # noqa: PLC0415 - slow to import

    return uuid.uuid4().hex


def pause_of(response: Response | None, number: int) -> float | None:
    """How many seconds to wait before another try; None if that would not help."""
    if response is not None and response.status not in _BUSY:
        return None
    import random  # noqa: PLC0415 - slow to import

    wanted = response.headers.get("retry-after", "") if response is not None else ""
    pause = float(wanted) if wanted.isdigit() else 0.1 * 2**number
    return min(pause, _LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311 - only jitter


def unreachable(url: str, error: Exception | None) -> ServerUnreachable:
    reason = str(error) or type(error).__name__ if error is not None else "no answer"
    return ServerUnreachable(f"cannot reach {url}: {reason}; is the server running there?")


def read(response: Response, model: type[Model]) -> Model:
    """The answer as a model."""
    return read_as(model, response.content, status=response.status)


def read_as(model: type[Model], data: bytes, *, status: int = 200) -> Model:
    """JSON as a model; fields that a newer server adds are ignored."""
    from pydantic import ValidationError  # noqa: PLC0415 - slow to import

    try:
        return model.model_validate_json(data, extra="ignore")
    except ValidationError:
        raise _unknown_answer(status) from None


def ensure_ok(response: Response) -> Response:
    """The response; raises ApiError for what the server refused."""
    if response.is_success:
        return response
    try:
        facts = orjson.loads(response.content)
        code, detail = str(facts["code"]), str(facts["detail"])
        job_id = None if facts.get("job_id") is None else int(facts["job_id"])
    except (ValueError, KeyError, TypeError):
        raise _unknown_answer(response.status) from None
    raise ApiError(response.status, code, detail, errors=facts.get("errors"), job_id=job_id)


def _unknown_answer(status: int) -> ApiError:
    detail = (
        f"the server answered {status}, but not like a Mainspring server; check the address and "
        "that the server is not older than this program"
    )
    return ApiError(status, "unknown_answer", detail)


class EventReader:
    """Assembles the lines of an event stream into events."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self.last_id: str | None = None

    def feed(self, line: str) -> Iterator[tuple[str, bytes]]:
        """The name and the data of the event that the line completes."""
        if line.startswith(":"):
            return
        if line:
            name, _, value = line.partition(": ")
            self._fields[name] = value
            return
        fields, self._fields = self._fields, {}
        self.last_id = fields.get("id", self.last_id)
        if "data" in fields:
            yield fields.get("event", "message"), fields["data"].encode()
