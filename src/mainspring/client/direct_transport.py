"""The transport of a command that has the database's own credentials: no server, no network.

The endpoints are coroutines, so they run on an event loop in a thread of its own; a stream may then
be read by one thread while another sends a request.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mainspring.api import direct
from mainspring.api.auth import ServerState
from mainspring.api.routing import StreamingResponse
from mainspring.client.requests import Message, Response, is_success
from mainspring.domain.errors.client import ServerUnreachable
from mainspring.services import tokens

if TYPE_CHECKING:
    from mainspring.api import routing
    from mainspring.db.database import Database

T = TypeVar("T")


class DirectTransport:
    """Answers the messages of a client in this process, as the operator of the database."""

    def __init__(self, database: "Database") -> None:
        self._database = database
        settings = database.settings
        # Links lead to where a server of these settings would be, if one runs.
        public_url = f"http://{settings.host}:{settings.port}"
        self._state = SimpleNamespace(server=ServerState(database), public_url=public_url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.token = ""

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.token = self._run(self._open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, message: Message) -> Response:
        answer = self._run(direct.answer(self._request(message)))
        return _response(answer)

    @contextmanager
    def stream(self, message: Message) -> Iterator["DirectStream"]:
        answer = self._run(direct.answer(self._request(message)))
        if not isinstance(answer, StreamingResponse):
            yield DirectStream(_response(answer), iter(()))
            return
        parts = answer.parts
        try:
            yield DirectStream(Response(answer.status_code, {}, b""), self._lines(parts))
        finally:
            with suppress(RuntimeError):
                self._run(_close(parts))

    def close(self) -> None:
        """End the session of the command; may be called again."""
        if not self._thread.is_alive():
            return
        try:
            self._run(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _open(self) -> str:
        await tokens.ping(self._database)
        await tokens.open_to_app(self._database)
        return await tokens.open_console(self._database)

    async def _close(self) -> None:
        if self.token:
            await tokens.log_out(self._database, self.token)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._database.close_loop()

    def _request(self, message: Message) -> direct.DirectRequest:
        headers = {name.lower(): value for name, value in message.headers.items()}
        return direct.DirectRequest(
            message.method, message.target, headers, message.content or b"", self._state
        )

    def _lines(self, parts: AsyncIterator[bytes]) -> Iterator[str]:
        rest = b""
        while (part := self._run(_next(parts))) is not None:
            *lines, rest = (rest + part).split(b"\n")
            yield from (line.decode() for line in lines)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop's thread; an interrupt of this one ends it too."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ServerUnreachable("the command has closed its connection") from None
        except BaseException:
            future.cancel()
            raise


@dataclass(frozen=True, slots=True)
class DirectStream:
    """An answer that is read line by line."""

    answer: Response
    events: Iterator[str]

    @property
    def is_success(self) -> bool:
        return is_success(self.answer.status)

    def read(self) -> Response:
        return self.answer

    def lines(self) -> Iterator[str]:
        return self.events


def _response(answer: "routing.Response") -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status_code, headers, answer.body)


async def _next(parts: AsyncIterator[bytes]) -> bytes | None:
    return await anext(parts, None)


async def _close(parts: Any) -> None:
    await parts.aclose()
