"""Spare connections: kept when they come back, made when there is none.

A pool without threads or tasks of its own, so it lives in any program, in any number of event
loops, and costs a list operation. A connection that has rested is asked whether it is still
there before it is lent.
"""

import asyncio
import os
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from mainspring.db import pool

_RESTED_AFTER = 1.0


class SyncSpares:
    """Lends blocking connections, at most `size` at a time."""

    def __init__(self, url: str, *, size: int, use_pooler: bool = False) -> None:
        self._url, self._use_pooler = url, use_pooler
        self._places = threading.BoundedSemaphore(size)
        self._spares: list[tuple[Connection[Any], float]] = []
        self._pid = os.getpid()

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        with self._places:
            connection = self._take()
            try:
                yield connection
            except BaseException:
                self._give_back(connection)
                raise
            self._give_back(connection)

    def close(self) -> None:
        self._forget_inherited()
        while self._spares:
            self._spares.pop()[0].close()

    def _forget_inherited(self) -> None:
        if self._pid != os.getpid():
            # Sockets shared with the parent of a fork must not be used, nor closed politely.
            self._spares, self._pid = [], os.getpid()

    def _take(self) -> Connection[Any]:
        self._forget_inherited()
        while self._spares:
            connection, since = self._spares.pop()
            if _is_fresh(connection, since) or _answers(connection):
                return connection
            connection.close()
        return pool.connect_sync(self._url, use_pooler=self._use_pooler)

    def _give_back(self, connection: Connection[Any]) -> None:
        if _is_reusable(connection):
            self._spares.append((connection, time.monotonic()))
        else:
            connection.close()


class AsyncSpares:
    """Lends connections inside one event loop, at most `size` at a time."""

    def __init__(self, url: str, *, size: int, use_pooler: bool = False) -> None:
        self._url, self._use_pooler = url, use_pooler
        self._places = asyncio.Semaphore(size)
        self._spares: list[tuple[AsyncConnection[Any], float]] = []
        self._pid = os.getpid()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with self._places:
            connection = await self._take()
            try:
                yield connection
            finally:
                await self._give_back(connection)

    async def close(self) -> None:
        while self._spares:
            await self._spares.pop()[0].close()

    def abandon(self) -> None:
        """Close from outside the event loop, which may be gone; not what a fork inherited."""
        while self._spares:
            connection, _ = self._spares.pop()
            if self._pid == os.getpid():
                connection.pgconn.finish()

    async def _take(self) -> AsyncConnection[Any]:
        while self._spares:
            connection, since = self._spares.pop()
            if _is_fresh(connection, since) or await _aanswers(connection):
                return connection
            await connection.close()
        return await pool.connect(self._url, name="mainspring", use_pooler=self._use_pooler)

    async def _give_back(self, connection: AsyncConnection[Any]) -> None:
        if _is_reusable(connection):
            self._spares.append((connection, time.monotonic()))
        else:
            await connection.close()


def _is_reusable(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    status = connection.info.transaction_status
    return not connection.closed and status is TransactionStatus.IDLE


def _is_fresh(connection: Connection[Any] | AsyncConnection[Any], since: float) -> bool:
    """Whether it may be lent unasked: it rested shortly, and no goodbye has arrived meanwhile."""
    return time.monotonic() - since < _RESTED_AFTER and not _has_news(connection.pgconn.socket)


if sys.platform == "win32":

    def _has_news(socket: int) -> bool:
        return bool(select.select([socket], [], [], 0)[0])

else:

    def _has_news(socket: int) -> bool:
        # Not select.select, which knows only the first 1024 descriptors of a process.
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))


def _answers(connection: Connection[Any]) -> bool:
    try:
        connection.execute("select 1")
    except psycopg.Error:
        return False
    return True


async def _aanswers(connection: AsyncConnection[Any]) -> bool:
    try:
        await connection.execute("select 1")
    except psycopg.Error:
        return False
    return True
