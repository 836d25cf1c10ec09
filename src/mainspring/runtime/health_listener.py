"""Answers /healthz and /readyz on a port of its own, and touches a file while all is well.

    event loop of the roles ── vitals ──▶ thread ──▶ GET /healthz, GET /readyz, health_file

The thread has an event loop of its own, so that it can say that the other one is blocked. It speaks
as little HTTP as probes need: one request a connection.
"""

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from mainspring.domain.errors import SettingsError
from mainspring.domain.health import Answer, ReadVitals, Vitals
from mainspring.runtime.loop import Loop
from mainspring.services.health import DatabaseProbe, Health, body_of
from mainspring.services.sockets import listen
from mainspring.settings import Settings

_BEAT_SECONDS = 1.0
_TOUCH_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
_LARGEST_REQUEST = 16_384
_MOST_CONNECTIONS = 50
_LAST_SECONDS = 2.0
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HealthListener:
    """Listens from the moment it is made, so that a port that is taken is reported at once."""

    def __init__(self, url: str, settings: Settings, roles: Sequence[ReadVitals]) -> None:
        self._url, self._settings, self._roles = url, settings, roles
        self._socket: socket.socket | None = None
        self._beats = Loop("event", self._beat)
        self._stopping = asyncio.Event()
        self._connections = 0
        if settings.health_file is not None:
            self._ensure_file()
        if settings.health_port:
            self._socket = listen(settings.health_host, settings.health_port, prefix="health_")

    # In the event loop of the roles

    async def run(self) -> None:
        beating = asyncio.create_task(self._beats.run())
        thread = _Thread(self)
        thread.start()
        try:
            await self._stopping.wait()
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            await asyncio.to_thread(thread.close)

    def stop(self) -> None:
        self._stopping.set()

    def hurry(self) -> None:
        """It waits for nothing as it is."""

    async def _beat(self) -> float:
        return _BEAT_SECONDS

    # In the thread

    async def serve(self, until: asyncio.Event) -> None:
        """Answer until then."""
        health = self._health()
        touches = asyncio.create_task(Loop("health file", lambda: self._touch(health)).run())
        if self._settings.health_file is None:
            touches.cancel()
        try:
            if self._socket is None:
                await until.wait()
                return
            server = await asyncio.start_server(
                lambda reader, writer: self._answer(health, reader, writer),
                sock=self._socket,
                limit=_LARGEST_REQUEST,
            )
            await until.wait()
            server.close()
        finally:
            touches.cancel()
            await asyncio.gather(touches, return_exceptions=True)
            await health.close()

    def _health(self) -> Health:
        probe = DatabaseProbe(lambda: self._url, use_pooler=self._settings.use_pooler)
        health = Health(probe)
        health.add(lambda: Vitals((self._beats.rounds.pulse(),)), *self._roles)
        return health

    async def _answer(
        self, health: Health, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._connections += 1
        try:
            if self._connections <= _MOST_CONNECTIONS:
                async with asyncio.timeout(_REQUEST_SECONDS):
                    request = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await _response(health, request))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # No probe sends such a request.
        finally:
            self._connections -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _touch(self, health: Health) -> float:
        if health.healthy().is_yes and self._settings.health_file is not None:
            self._settings.health_file.touch()
        return _TOUCH_SECONDS

    def _ensure_file(self) -> None:
        file = self._settings.health_file
        try:
            if file is not None:
                file.touch()
        except OSError as error:
            raise SettingsError(
                f"setting health_file: cannot touch {file}: {error.strerror}; choose a file that "
                "this process may write"
            ) from error


class _Thread(threading.Thread):
    def __init__(self, listener: HealthListener) -> None:
        super().__init__(name="mainspring-health", daemon=True)
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        self._until = asyncio.Event()

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listener.serve(self._until))

    def close(self) -> None:
        with suppress(RuntimeError):  # Its event loop is closed.
            self._loop.call_soon_threadsafe(self._until.set)
        self.join(_LAST_SECONDS)


async def _response(health: Health, request: bytes) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if path not in (b"/healthz", b"/readyz"):
        return _written(404, b'{"status":"no such path; there are /healthz and /readyz"}')
    if method not in (b"GET", b"HEAD"):
        return _written(405, b'{"status":"method not allowed; use GET"}', b"Allow: GET, HEAD\r\n")
    answer: Answer = health.healthy() if path == b"/healthz" else await health.ready()
    return _written(200 if answer.is_yes else 503, body_of(answer), has_body=method == b"GET")


def _written(status: int, body: bytes, headers: bytes = b"", *, has_body: bool = True) -> bytes:
    return (
        b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"Cache-Control: no-store\r\nConnection: close\r\n%s\r\n%s"
        % (status, _REASONS[status].encode(), len(body), headers, body if has_body else b"")
    )
