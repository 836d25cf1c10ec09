"""Sessions of a tenant's requests that run as the owner; see tenant_sessions.py for the others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.calls import Params
from mainspring.db.database import Database
from mainspring.db.sessions import Fetched, fetched
from mainspring.db.sql_errors import translated


class RequestSession:
    """Each statement in a transaction of its own, on a connection out of the share of `who`; of
    those for searches, if it is one."""

    def __init__(self, database: Database, who: str, *, is_search: bool = False) -> None:
        self.settings = database.settings
        self.who = who
        self._database, self._is_search = database, is_search

    def searching(self) -> "RequestSession":
        return RequestSession(self._database, self.who, is_search=True)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        with translated():
            pools = await self._database.request_pools()
            pool = pools.searches if self._is_search else pools.requests
            async with pool.connection(self.who) as connection:
                yield connection

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        async with self.connection() as connection:
            return await fetched(await connection.execute(query, params))
