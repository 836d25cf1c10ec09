"""A connection of one's own that comes back after every loss."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db import connect
from mainspring.domain.errors.database import DatabaseUnreachable

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, DatabaseUnreachable)


class ReconnectingConnection:
    """Runs actions on one connection, one at a time, and retries each until the database
    answers. So an action must be safe to repeat when its answer was lost on the way."""

    def __init__(
        self,
        url: str,
        *,
        name: str,
        use_pooler: bool = False,
        pins_plans: bool = False,
        on_reconnect: Callable[[AsyncConnection[Any]], Awaitable[None]] | None = None,
    ) -> None:
        self._url, self._name = url, name
        self._use_pooler, self._pins_plans = use_pooler, pins_plans
        self._on_reconnect = on_reconnect
        self._connection: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._pause = _FIRST_PAUSE
        self._was_lost = False

    async def run(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        while True:
            try:
                return await self.try_once(action)
            except _LOST as error:
                await self._lose(error)

    async def try_once(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        """Run the action without retrying it."""
        async with self._lock:
            return await action(await self._connected())

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _connected(self) -> AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await connect.connect(
                self._url,
                name=self._name,
                use_pooler=self._use_pooler,
                pins_plans=self._pins_plans,
            )
            if self._was_lost and self._on_reconnect is not None:
                await self._on_reconnect(self._connection)
            self._was_lost, self._pause = False, _FIRST_PAUSE
        return self._connection

    async def _lose(self, error: Exception) -> None:
        if not self._was_lost:
            telemetry.event("database_lost", connection=self._name, error=_first_line(error))
        self._was_lost = True
        await self.close()
        await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - only jitter
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
