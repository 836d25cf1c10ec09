"""The client of one server; its resources are the modules beside this one."""

import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mainspring.client._sync.resources import Resources
from mainspring.client.protocols import Transport
from mainspring.client.requests import (
    TRIES,
    EventReader,
    Message,
    Request,
    Response,
    TransportError,
    encode,
    ensure_ok,
    given,
    named,
    pause_of,
    read,
    unreachable,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mainspring.api.models.audit import AuditModel
    from mainspring.api.models.base import Page
    from mainspring.api.models.callers import CallerModel
    from mainspring.api.models.queues import QueueModel, QueuePauseModel
    from mainspring.api.models.workers import WorkerModel

Model = TypeVar("Model", bound="BaseModel")


class Client(Resources):
    """The REST API of one server. `tenant` is the one an operator acts on."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        tenant: str | None = None,
        timeout: float = 30.0,
        transport: Transport | None = None,
    ) -> None:
        self.url, self._token, self._tenant, self._timeout = url.rstrip("/"), token, tenant, timeout
        self._transport = _connect(self.url) if transport is None else transport

    def __getattr__(self, name: str) -> Any:
        """Import a resource with its models on first use: most programs need few of them."""
        if name not in Resources.__annotations__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        module = import_module(f"{__package__}.{name}")
        resource = getattr(module, name.title())(self)
        setattr(self, name, resource)
        return resource

    def me(self) -> "CallerModel":
        """Who the token belongs to, and what it may do."""
        from mainspring.api.models.callers import CallerModel  # noqa: PLC0415 - slow to import

        return self.call(Request("GET", "/me"), CallerModel)

    def workers(self) -> "list[WorkerModel]":
        """All workers that you may see, newest first."""
        from mainspring.api.models.base import Page  # noqa: PLC0415 - slow to import
        from mainspring.api.models.workers import WorkerModel  # noqa: PLC0415

        return [each for each in self.pages(Request("GET", "/workers"), Page[WorkerModel])]

    def queues(self) -> "list[QueueModel]":
        """All queues that have live jobs or are paused, by name."""
        from mainspring.api.models.base import Page  # noqa: PLC0415 - slow to import
        from mainspring.api.models.queues import QueueModel  # noqa: PLC0415

        return [each for each in self.pages(Request("GET", "/queues"), Page[QueueModel])]

    def pause_queue(self, name: str, **fields: Any) -> "QueuePauseModel":
        """Pause a queue: nothing of it is claimed. Fields: `reason`, and `until` or `duration`."""
        from mainspring.api.models.queues import QueuePauseModel  # noqa: PLC0415 - slow to import

        request = Request("POST", f"/queues/{named(name)}/pause", body=given(**fields))
        return self.call(request, QueuePauseModel)

    def resume_queue(self, name: str) -> None:
        """End the pause of a queue."""
        self.send(Request("POST", f"/queues/{named(name)}/resume"))

    def audit(self, *, limit: int = 50, **filters: Any) -> Iterator["AuditModel"]:
        """Changes, newest first; `limit` is the page size."""
        from mainspring.api.models.audit import AuditModel  # noqa: PLC0415
        from mainspring.api.models.base import Page  # noqa: PLC0415 - slow to import

        params = {**filters, "limit": limit}
        return self.pages(Request("GET", "/audit", params), Page[AuditModel])

    def call(self, request: Request, model: type[Model]) -> Model:
        """The response as a model; raises ApiError if the server refuses."""
        return read(self.send(request), model)

    def send(self, request: Request) -> Response:
        """The response; raises ApiError if the server refuses. Retries requests that are safe to
        repeat."""
        message = self._encode(request)
        problem: TransportError | None = None
        for number in range(TRIES):
            response = None
            try:
                response = self._transport.send(message)
            except TransportError as error:
                problem = error
            pause = pause_of(response, number) if request.may_repeat else None
            if pause is not None and number + 1 < TRIES:
                time.sleep(pause)
            elif response is not None:
                return ensure_ok(response)
            else:
                break
        raise unreachable(self.url, problem)

    def pages(self, request: Request, model: "type[Page[Model]]") -> Iterator[Model]:
        """Every item of a list; the next page is requested when it is needed."""
        cursor = None
        while True:
            params = {**request.params, **given(cursor=cursor)}
            page = self.call(Request(request.method, request.path, params), model)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    def listen(
        self, path: str, params: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """The events of a stream, which is resumed if it is interrupted."""
        reader, failures = EventReader(), 0
        while True:
            headers = given(**{"Last-Event-ID": reader.last_id})
            message = self._encode(Request("GET", path, params or {}, headers=headers))
            try:
                with self._transport.stream(message) as answer:
                    if not answer.is_success:
                        ensure_ok(answer.read())
                    for line in answer.lines():
                        for event in reader.feed(line):
                            failures = 0
                            yield event
                            if event[0] == "end":
                                return
            except TransportError as error:
                failures += 1
                if failures > TRIES:
                    raise unreachable(self.url, error) from error
            time.sleep(pause_of(None, failures) or 0)

    def close(self) -> None:
        """Close the connections to the server."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, request: Request) -> Message:
        return encode(request, token=self._token, tenant=self._tenant, timeout=self._timeout)


def _connect(url: str) -> Transport:
    from mainspring.client.transport import HttpTransport  # noqa: PLC0415 - slow to import

    return HttpTransport(url)
