"""Sessions of one caller: every transaction begins by letting the caller in.

What follows in the transaction runs as the role that row-level security is about, with the
caller's tenant and name as settings; see internal/access.sql. Both leave with one round trip.
Neither class is a `Database` or hands one out, so whoever has one cannot run anything as the owner.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.calls import Call, Params
from mainspring.db.request_sessions import RequestSession
from mainspring.db.sessions import Fetched, fetched
from mainspring.db.sql_errors import translated
from mainspring.settings import Settings


class TenantSession:
    """Each statement in a transaction of its own, on the connections of its tenant's requests. It
    opens and closes nothing."""

    def __init__(self, requests: RequestSession, enter: Call) -> None:
        self.settings = requests.settings
        self._connection, self._enter = requests.connection, enter

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        async with self._connection() as connection:
            async with connection.pipeline(), connection.transaction():
                await connection.execute(self._enter.sql, self._enter.params)
                cursor = await connection.execute(query, params)
            return await fetched(cursor)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with self._connection() as connection, connection.transaction():
            await connection.execute(self._enter.sql, self._enter.params)
            yield connection

    @asynccontextmanager
    async def begin(self) -> AsyncIterator["TransactionSession"]:
        """All that is run inside is one transaction."""
        async with self.transaction() as connection:
            yield TransactionSession(self.settings, connection)


class TransactionSession:
    """One transaction of a caller; what is run on it comes one after the other."""

    def __init__(self, settings: Settings, connection: AsyncConnection[Any]) -> None:
        self.settings = settings
        self._connection = connection
        self._lock = asyncio.Lock()

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        with translated():
            async with self._lock:
                return await fetched(await self._connection.execute(query, params))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        """The one there is."""
        with translated():
            yield self._connection
