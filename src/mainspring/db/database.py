"""The database as an interface reaches it: found, migrated if it is ours, and called."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection, Cursor

from mainspring.db import calls, migrate
from mainspring.db.calls import Call, Params
from mainspring.db.connect import for_own_statements, with_options
from mainspring.db.pool import AsyncPool, SyncPool
from mainspring.db.request_pools import RequestPools
from mainspring.db.role_logins import RoleLogins
from mainspring.db.sessions import Fetched, fetched, has_rows
from mainspring.db.sql_errors import translated
from mainspring.domain.jobs.options import MAX_PAYLOAD_BYTES
from mainspring.settings import Settings

if TYPE_CHECKING:
    from mainspring.db.embedded import EmbeddedServer

_SIZE = 20


class Database:
    """Opened by its first use; a given URL, or the embedded server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None
        self._url: str | None = None
        self._sync: SyncPool | None = None
        self._async: dict[asyncio.AbstractEventLoop, AsyncPool] = {}
        self._requests: dict[asyncio.AbstractEventLoop, RequestPools] = {}

    @property
    def url(self) -> str:
        """Starts the embedded server, and migrates it, where no URL was given."""
        return self._find_url() if self._url is None else self._url

    @property
    def data_dir(self) -> Path:
        """Where the embedded server keeps its data."""
        from mainspring.db import embedded  # noqa: PLC0415 - not for a server of your own

        return self.settings.data_dir or embedded.default_data_dir()

    @property
    def is_embedded(self) -> bool:
        return self.settings.database_url is None

    def run(self, call: Call, connection: object = None) -> list[tuple[Any, ...]]:
        """On the caller's connection if given, else on one of ours in a transaction of its own."""
        if connection is not None:
            return calls.run(connection, call)
        with translated(), self.sync_pool.connection() as ours:
            return _rows(ours.execute(call.sql, call.params))

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        """On a connection of ours, in a transaction of its own."""
        with translated():
            async with (await self.async_pool()).connection() as ours:
                return await fetched(await ours.execute(query, params))

    def run_all(self, batch: Sequence[Call]) -> list[tuple[Any, ...]]:
        """All calls in one transaction; their rows in one list."""
        with translated(), self.sync_pool.connection() as ours, ours.transaction():
            return [row for call in batch for row in _rows(ours.execute(call.sql, call.params))]

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection of ours, on which each statement is a transaction of its own."""
        with translated():
            async with (await self.async_pool()).connection() as ours:
                yield ours

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection of ours inside a transaction."""
        with translated():
            async with (await self.async_pool()).connection() as ours, ours.transaction():
                yield ours

    @property
    def sync_pool(self) -> SyncPool:
        if self._sync is None:
            use_pooler = self.settings.use_pooler
            self._sync = SyncPool(self._lending_url(), size=_SIZE, use_pooler=use_pooler)
        return self._sync

    async def async_pool(self) -> AsyncPool:
        loop = asyncio.get_running_loop()
        if loop not in self._async:
            url = await self._url_for_loop()
            pool = AsyncPool(url, size=_SIZE, use_pooler=self.settings.use_pooler)
            # Another task may have been first meanwhile, and its connections are in use.
            self._async.setdefault(loop, pool)
        return self._async[loop]

    async def request_pools(self) -> RequestPools:
        """For requests of the API."""
        loop = asyncio.get_running_loop()
        if loop not in self._requests:
            url = await self._url_for_loop()
            pools = RequestPools(url, use_pooler=self.settings.use_pooler)
            self._requests.setdefault(loop, pools)
        return self._requests[loop]

    async def _url_for_loop(self) -> str:
        self._forget_closed_loops()
        if self._url is None:
            await asyncio.to_thread(self._find_url)
        return self._lending_url()

    def role_logins(self) -> RoleLogins:
        """Logins as other roles on this database."""
        return RoleLogins(self.url, self.settings)

    def close(self) -> None:
        """Let go of connections and of the embedded server."""
        if self._sync is not None:
            self._sync.close()
            self._sync = None
        for pools in self._pools:
            while pools:
                pools.popitem()[1].abandon()
        with self._lock:
            self._url = None
            if self._server is not None:
                from mainspring.db import embedded  # noqa: PLC0415 - not for a server of your own

                embedded.release(self._server)
                self._server = None

    async def close_loop(self) -> None:
        """Let go of the connections of the running event loop."""
        for pools in self._pools:
            pool = pools.pop(asyncio.get_running_loop(), None)
            if pool is not None:
                await pool.close()

    def _forget_closed_loops(self) -> None:
        for pools in self._pools:
            for loop in [loop for loop in pools if loop.is_closed()]:
                pools.pop(loop).abandon()

    @property
    def _pools(self) -> tuple[dict[asyncio.AbstractEventLoop, Any], ...]:
        """Those of event loops."""
        return self._async, self._requests

    async def aclose(self) -> None:
        await self.close_loop()
        await asyncio.to_thread(self.close)

    def _lending_url(self) -> str:
        """The URL for our own connections, on which the SQL functions hear of the limit."""
        limit, url = self.settings.max_payload_bytes, for_own_statements(self.url)
        if limit == MAX_PAYLOAD_BYTES:
            return url
        return with_options(url, f"-c mainspring.max_payload_bytes={limit}")

    def _find_url(self) -> str:
        with self._lock:
            if self._url is None:
                self._url = self.settings.database_url or self._embedded_url()
            return self._url

    def _embedded_url(self) -> str:
        from mainspring.db import embedded  # noqa: PLC0415 - not for a server of your own

        self._server = embedded.acquire(self.settings.data_dir)
        migrate.migrate_apart(self._server.url)
        return self._server.url


def _rows(cursor: Cursor[Any]) -> list[tuple[Any, ...]]:
    return cursor.fetchall() if has_rows(cursor) else []
