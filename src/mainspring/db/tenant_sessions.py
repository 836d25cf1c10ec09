"""The database as one caller may use it: every transaction begins by letting the caller in.

What follows in the transaction runs as the role that row-level security is about, with the
caller's tenant and name as settings; see internal/access.sql. Both leave with one round trip.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from psycopg import AsyncConnection

from mainspring.db import calls
from mainspring.db.calls import Call
from mainspring.db.database import Database, has_rows
from mainspring.db.sql_errors import translated


class Lender(Protocol):
    """Whoever lends connections."""

    def connection(self) -> Any: ...


class Acting(Database):
    """Someone's way to a database that others use too. It opens and closes nothing."""

    def __init__(self, database: Database, enter: Call) -> None:
        super().__init__(database.settings)
        self._shared = database
        self._enter = enter

    async def arun_entering(self, call: Call) -> list[tuple[Any, ...]]:
        """A statement that lets the caller in by itself, which saves a good part of the time."""
        return await self._shared.arun(call)

    async def arun(self, call: Call, connection: object = None) -> list[tuple[Any, ...]]:
        if connection is not None:
            return await calls.arun(connection, call)
        with translated():
            async with (await self._shared.async_pool()).connection() as ours:
                async with ours.pipeline(), ours.transaction():
                    await ours.execute(self._enter.sql, self._enter.params)
                    cursor = await ours.execute(call.sql, call.params)
                return await cursor.fetchall() if has_rows(cursor) else []

    async def arun_all(self, batch: Sequence[Call]) -> list[tuple[Any, ...]]:
        async with self.held() as held:
            return [row for call in batch for row in await held.arun(call)]

    async def async_pool(self) -> Any:
        return _Entered(await self._shared.async_pool(), self._enter)

    @asynccontextmanager
    async def held(self) -> AsyncIterator["Held"]:
        """All that is run inside is one transaction."""
        with translated():
            async with (await self.async_pool()).connection() as connection:
                yield Held(self, connection)


class Held(Database):
    """One transaction of a caller; what is run on it comes one after the other."""

    def __init__(self, database: Database, connection: AsyncConnection[Any]) -> None:
        super().__init__(database.settings)
        self._connection = connection
        self._turn = asyncio.Lock()

    async def arun(self, call: Call, connection: object = None) -> list[tuple[Any, ...]]:
        if connection is not None:
            return await calls.arun(connection, call)
        with translated():
            async with self._turn:
                cursor = await self._connection.execute(call.sql, call.params)
                return await cursor.fetchall() if has_rows(cursor) else []

    async def arun_all(self, batch: Sequence[Call]) -> list[tuple[Any, ...]]:
        return [row for call in batch for row in await self.arun(call)]

    async def async_pool(self) -> Any:
        return _Lent(self._connection)


class _Entered:
    """Lends connections inside a transaction that the caller was let into."""

    def __init__(self, lender: Lender, enter: Call) -> None:
        self._lender, self._enter = lender, enter

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with self._lender.connection() as connection, connection.transaction():
            await connection.execute(self._enter.sql, self._enter.params)
            yield connection


class _Lent:
    """Lends the one connection there is."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        yield self._connection
