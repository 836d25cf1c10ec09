"""A connection of one's own that comes back after every loss."""

import asyncio
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db import connect
from mainspring.db.outages import OUTAGES
from mainspring.db.unprepared import is_outdated
from mainspring.domain.errors.database import DatabaseUnreachable
from mainspring.domain.sqlstates import is_worth_retrying

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, DatabaseUnreachable)


class ReconnectingConnection:
    """Runs actions on one connection, one at a time, and retries each until the database
    answers. So an action must be safe to repeat when its answer was lost on the way. What the
    database answers that would come back as often as it is asked is raised.

    Other threads may read since when an action has waited, how often it has failed since, and
    `backend_pid`; nothing else.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        use_pooler: bool = False,
        pins_plans: bool = False,
        patience_seconds: float = connect.PATIENCE_SECONDS,
        on_reconnect: Callable[[AsyncConnection[Any]], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.waiting_since: float | None = None
        self.failures = 0
        self._url = url
        self._use_pooler, self._pins_plans = use_pooler, pins_plans
        self._patience_seconds = patience_seconds
        self._on_reconnect = on_reconnect
        self._connection: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._pause = _FIRST_PAUSE
        self._was_lost = False
        self._connected_at = 0.0

    @property
    def backend_pid(self) -> int | None:
        """The server process of this connection; None while there is none to ask about, and
        behind a pooler, which does not say."""
        connection = self._connection
        if connection is None or self._use_pooler:
            return None
        try:
            return connection.info.backend_pid
        except psycopg.Error:
            return None

    async def run(
        self,
        action: Callable[[AsyncConnection[Any]], Awaitable[T]],
        *,
        is_passing: Callable[[str | None], bool] = is_worth_retrying,
    ) -> T:
        """`is_passing` says of which error codes of the server the action is retried; the others
        are raised."""
        self._begin()
        try:
            while True:
                try:
                    async with self._lock:
                        return await action(await self._connected())
                except (psycopg.Error, DatabaseUnreachable) as error:
                    if is_outdated(error):
                        await self.close()
                    elif self._is_lost(error, is_passing):
                        await self._lose(error)
                    else:
                        raise
        finally:
            self._end()

    async def try_once(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        """Run the action without retrying it."""
        self._begin()
        try:
            async with self._lock:
                return await action(await self._connected())
        except (psycopg.Error, DatabaseUnreachable) as error:
            self._note(error)
            if is_outdated(error):
                await self.close()
            raise
        finally:
            self._end()

    def abort(self) -> None:
        """Break the connection under an action that waits for an answer which will not come: it
        fails at once, as if the server had closed it."""
        if self._connection is not None:
            shut_down(self._connection)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def _begin(self) -> None:
        if not self._waiting:
            self.waiting_since = time.monotonic()
        self._waiting += 1

    def _end(self) -> None:
        self._waiting -= 1
        self.failures = 0
        self.waiting_since = time.monotonic() if self._waiting else None

    def _is_lost(self, error: Exception, is_passing: Callable[[str | None], bool]) -> bool:
        # A server that ends a session says why, and that is not always an operational error.
        is_closed = self._connection is not None and self._connection.closed
        return is_closed or (
            isinstance(error, _LOST) and is_passing(getattr(error, "sqlstate", None))
        )

    async def _connected(self) -> AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await connect.connect(
                self._url,
                name=self.name,
                use_pooler=self._use_pooler,
                pins_plans=self._pins_plans,
                patience_seconds=self._patience_seconds,
            )
            self._connected_at = time.monotonic()
            OUTAGES.answers(self._url, self.name)
            if self._was_lost and self._on_reconnect is not None:
                await self._on_reconnect(self._connection)
            self._was_lost, self._pause = False, _FIRST_PAUSE
        return self._connection

    def _note(self, error: Exception) -> bool:
        """Whether it is of an outage, which is logged once for all connections."""
        connection = self._connection
        if isinstance(error, DatabaseUnreachable):
            OUTAGES.unreachable(self._url, self.name, error)
        elif connection is not None and connection.closed:
            OUTAGES.broken(self._url, self.name, error, connected_at=self._connected_at)
        else:
            return False
        return True

    async def _lose(self, error: Exception) -> None:
        if not self._note(error) and not self.failures:
            telemetry.event("statement_retried", connection=self.name, error=error)
        self._was_lost = True
        self.failures += 1
        await self.close()
        await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - only jitter
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def shut_down(connection: psycopg.Connection[Any] | AsyncConnection[Any]) -> None:
    """End both directions of its socket, which ends any wait for it. The connection itself is left
    to whoever uses it."""
    try:
        descriptor = os.dup(connection.pgconn.socket)
    except (psycopg.Error, OSError):
        return  # It is closed.
    with socket.socket(fileno=descriptor) as own:
        try:
            own.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
