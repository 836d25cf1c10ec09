"""The console that `mainspring up` opens, so that commands find it and need no token.

It lives for minutes and is renewed while the process does, so that what a killed one leaves behind
is soon of no use; the next start ends it at once.
"""

import asyncio
import os
import socket
from contextlib import suppress

from mainspring import telemetry
from mainspring.app import Mainspring
from mainspring.cli import last_up
from mainspring.cli.login import abandoned_token, forget_local, keep_local
from mainspring.domain.access.tokens import LOCAL_LIFE
from mainspring.domain.errors import MainspringError
from mainspring.services import tokens

_RENEWALS_PER_LIFE = 4


class Console:
    """Open from `open` to `close`, and renewed while it runs."""

    def __init__(self, app: Mainspring, server: str) -> None:
        self._app, self._server = app, server
        self._stopped = asyncio.Event()
        self._token = ""
        self.where: str | None = None
        """The options by which commands come here; None where no profile could be left."""

    async def open(self) -> None:
        """End what an earlier one has left, and leave a profile."""
        if (left := abandoned_token()) is not None:
            await tokens.log_out(self._app.database, left)
        await self._open()

    async def run(self) -> None:
        pause = LOCAL_LIFE.total_seconds() / _RENEWALS_PER_LIFE
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopped.wait()
                    return
            try:
                await self._renew()
            except MainspringError as error:
                telemetry.event("console_not_renewed", error=str(error))

    def stop(self) -> None:
        self._stopped.set()

    def hurry(self) -> None:
        """It waits for nothing as it is."""

    async def close(self) -> None:
        """Take away what was left, also where the database cannot be reached any more."""
        forget_local()
        await tokens.log_out(self._app.database, self._token)

    async def _open(self) -> None:
        # With colons, which no token that someone makes can have in its name.
        name = f"up:{socket.gethostname()}:{os.getpid()}"
        self._token = await tokens.open_console(self._app.database, name, LOCAL_LIFE)
        self.where = keep_local(self._server, self._token)
        last_up.keep(self._app.database)

    async def _renew(self) -> None:
        match await tokens.renew_console(self._app.database, self._token, LOCAL_LIFE):
            case "revoked":
                telemetry.event("console_revoked", note="restart `mainspring up` for a new one")
                await self._stopped.wait()
            case "pruned":
                # The machine was asleep, or the database away, for longer than its life.
                await self._open()
