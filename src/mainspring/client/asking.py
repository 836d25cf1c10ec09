"""What both clients have in common: requests, refusals, and what may be asked once more."""

import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import orjson
from pydantic import BaseModel, ValidationError

from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.client import ApiError, ServerUnreachable

Model = TypeVar("Model", bound=BaseModel)

TRIES = 4
PREFIX = "/api/v1"
_BUSY = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 5.0
_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Ask:
    """A request; `is_safe` if asking twice does no more than asking once. `patience` is how many
    seconds the answer may take beyond the client's timeout."""

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

    @property
    def url(self) -> str:
        return f"{PREFIX}{self.path}"

    def arguments(self) -> dict[str, Any]:
        """As httpx takes it."""
        given = {name: _text(value) for name, value in self.params.items() if value is not None}
        content = None if self.body is None else orjson.dumps(plain(self.body))
        headers = {**self.headers, **({"Content-Type": "application/json"} if content else {})}
        return {"params": given, "content": content, "headers": headers}


def plain(value: Any) -> Any:
    """A body as JSON: durations are seconds, instants are text, and what is None is left out."""
    match value:
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
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
    return value


def named(name: str) -> str:
    """A name as one part of a path, whatever it holds."""
    if not name:
        raise InvalidOption("name", "must not be empty")
    return quote(name, safe="").replace(".", "%2E")


def create(path: str, body: Any) -> Ask:
    """A create under a key of its own, so that it can be sent again when the answer is lost."""
    return Ask("POST", path, body=body, headers={"Idempotency-Key": new_key()}, is_safe=True)


def operation(action: str, said: Mapping[str, Any], *, dry_run: bool) -> Ask:
    """A bulk operation; whatever is said besides `all` and `reason` is a filter."""
    filters = given(**said)
    body: dict[str, Any] = {"action": action, "filter": filters, "dry_run": dry_run}
    for name in ("all", "reason"):
        if name in filters:
            body[name] = filters.pop(name)
    return create("/jobs/bulk", body)


def act(path: str, body: Any = None) -> Ask:
    """An action that does no more when it is asked for twice."""
    return Ask("POST", path, body=body, is_safe=True)


def new_key() -> str:
    """A key under which a create can be asked for once more."""
    return uuid.uuid4().hex


def pause_of(response: httpx.Response | None, number: int) -> float | None:
    """How long to wait before the same is asked again; None if that would not help."""
    if response is not None and response.status_code not in _BUSY:
        return None
    told = response.headers.get("retry-after", "") if response is not None else ""
    pause = float(told) if told.isdigit() else 0.1 * 2**number
    return min(pause, _LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311 - only jitter


def unreachable(url: str, error: Exception) -> ServerUnreachable:
    return ServerUnreachable(
        f"cannot reach {url}: {str(error) or type(error).__name__}; is the server running there?"
    )


def read(response: httpx.Response, model: type[Model]) -> Model:
    """What the server answered; raises ApiError for what it refused."""
    ensure_ok(response)
    return read_as(model, response.content, status=response.status_code)


def read_as(model: type[Model], data: bytes, *, status: int = 200) -> Model:
    """A part of an answer. A newer server may say more than this client knows of."""
    try:
        return model.model_validate_json(data, extra="ignore")
    except ValidationError:
        raise _unknown_answer(status) from None


def ensure_ok(response: httpx.Response) -> None:
    if response.is_success:
        return
    try:
        facts = orjson.loads(response.content)
        code, detail = str(facts["code"]), str(facts["detail"])
    except (ValueError, KeyError, TypeError):
        raise _unknown_answer(response.status_code) from None
    raise ApiError(response.status_code, code, detail, errors=facts.get("errors"))


def _unknown_answer(status: int) -> ApiError:
    detail = (
        f"the server answered {status}, and not as Mainspring does; look whether the address is "
        "right, and the server no older than this program"
    )
    return ApiError(status, "unknown_answer", detail)


class EventReader:
    """The lines of a stream, put together to events."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self.last_id: str | None = None

    def feed(self, line: str) -> Iterator[tuple[str, bytes]]:
        """The name and the data of an event that the line completes."""
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
