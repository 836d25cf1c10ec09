"""The server: the API on a port, until it is told to stop."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI

from mainspring import telemetry
from mainspring.api.connections import KEEP_ALIVE_SECONDS, Connections, protocol_of
from mainspring.api.hosts import reached_by
from mainspring.domain.health import ReadVitals
from mainspring.services.sockets import listen

_TICK = 0.1
_TICKS_A_DAY = 864_000


class _Uvicorn(uvicorn.Server):
    """Leaves signals to whoever runs it, and ends when it is told to, not at the next tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % _TICKS_A_DAY
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK):
                    await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if not self.force_exit:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """Listens from the moment it is made, so that a port that is taken is told at once."""

    def __init__(self, app: FastAPI, *, host: str, port: int) -> None:
        self._app = app
        self._socket = listen(host, port, hint=" with --port")
        self._host = host
        app.state.listens_on = host
        app.state.public_url = self._url(reached_by(host))
        # Streams go on after a signal, until `stop`.
        app.state.server.hub.handles_signals = False
        settings = app.state.server.settings
        connections = Connections(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.proxy_networks,
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # Which proxies are believed is a setting of ours.
            proxy_headers=False,
            date_header=True,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            http=protocol_of(connections),
        )
        self._server = _Uvicorn(config)

    @property
    def url(self) -> str:
        return self._url(self._host)

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.url.removeprefix("http://")

    def watch(self, *roles: ReadVitals) -> None:
        """Answer for these roles of the process too, in /healthz and /readyz."""
        self._app.state.server.health.add(*roles)

    @property
    def vitals(self) -> ReadVitals:
        """What it says of itself."""
        vitals: ReadVitals = self._app.state.server.vitals
        return vitals

    def _url(self, host: str) -> str:
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self._socket.getsockname()[1]}"

    async def run(self) -> None:
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()
            await self._app.state.server.health.close()
        telemetry.event("server_stopped")

    def stop(self) -> None:
        """After answering what was asked, and telling streams the last state."""
        self._app.state.server.is_stopping = True
        self._app.state.server.hub.close()
        self._server.should_exit = True
        self._server.stopping.set()

    def hurry(self) -> None:
        """Wait for no answer when stopping."""
        self._server.force_exit = True
