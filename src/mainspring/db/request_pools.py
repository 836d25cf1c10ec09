"""The connections of API requests: shared by tenants, and nothing waits or runs on them for long.

    requests of tenants ─┬─ share ─▶ requests   20 connections
                         └─ share ─▶ searches   6, for lists with filters and their streams
    the server itself ─────────────▶ Database.async_pool, which no tenant can use up

A list with filters may read thousands of jobs to find a few. So many at a time as there are
processors would leave none to the others.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.connect import with_options
from mainspring.db.pool import AsyncPool
from mainspring.db.shares import Shares
from mainspring.domain.errors.database import ConnectionsBusy

REQUESTS = 20
SEARCHES = 6
LOCK_SECONDS = 2
REQUEST_SECONDS = 30
SEARCH_SECONDS = 10
WAIT_SECONDS = 5.0


class RequestPool:
    """Lends connections inside one event loop, to each tenant its share of them."""

    def __init__(
        self, url: str, *, size: int, statement_seconds: int, use_pooler: bool = False
    ) -> None:
        timeouts = f"-c lock_timeout={LOCK_SECONDS}s -c statement_timeout={statement_seconds}s"
        self._pool = AsyncPool(with_options(url, timeouts), size=size, use_pooler=use_pooler)
        self._shares = Shares(size, wait_seconds=WAIT_SECONDS)

    @asynccontextmanager
    async def connection(self, who: str) -> AsyncIterator[AsyncConnection[Any]]:
        """Raises ConnectionsBusy if none becomes free for the tenant in time."""
        try:
            await self._shares.take(who)
        except TimeoutError:
            raise ConnectionsBusy(who, WAIT_SECONDS) from None
        try:
            async with self._pool.connection() as connection:
                yield connection
        finally:
            self._shares.give_back(who)

    async def close(self) -> None:
        await self._pool.close()

    def abandon(self) -> None:
        """Close from outside the event loop."""
        self._pool.abandon()


class RequestPools:
    """Those of one event loop."""

    def __init__(self, url: str, *, use_pooler: bool = False) -> None:
        self.requests = RequestPool(
            url, size=REQUESTS, statement_seconds=REQUEST_SECONDS, use_pooler=use_pooler
        )
        self.searches = RequestPool(
            url, size=SEARCHES, statement_seconds=SEARCH_SECONDS, use_pooler=use_pooler
        )

    async def close(self) -> None:
        await self.requests.close()
        await self.searches.close()

    def abandon(self) -> None:
        """Close from outside the event loop."""
        self.requests.abandon()
        self.searches.abandon()
