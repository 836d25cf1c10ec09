"""A connection pool: connections are kept when they come back, and made when there is none.

A pool without threads or tasks of its own, so it lives in any program, in any number of event
loops, and costs a list operation. A connection that has rested is asked whether it is still
there before it is lent.
"""

import asyncio
import os
import select
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import Empty, SimpleQueue
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from mainspring.db import connect
from mainspring.db.outages import OUTAGES
from mainspring.domain.errors.database import PoolExhausted

_RESTED_AFTER = 1.0
# What DISCARD ALL does, without the prepared statements, which are ours.
_RESET = (
    "close all; set session authorization default; reset all; unlisten *; "
    "discard temp; discard sequences; select pg_advisory_unlock_all()"
)


class PooledConnection:
    """A blocking connection that rests, or is lent."""

    __slots__ = ("connection", "has_input", "rested_at")

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.has_input = _watch(connection.pgconn.socket)
        self.rested_at = 0.0

    def is_fresh(self) -> bool:
        """Whether it may be lent unasked: it rested shortly, and no goodbye has arrived since."""
        return time.monotonic() - self.rested_at < _RESTED_AFTER and not self.has_input()


class SyncPool:
    """Lends blocking connections, at most `size` at a time; who waits longer than `wait_seconds`
    for one gets PoolExhausted."""

    def __init__(
        self,
        url: str,
        *,
        size: int,
        use_pooler: bool = False,
        wait_seconds: float | None = None,
    ) -> None:
        self._url, self._use_pooler = url, use_pooler
        self._size, self._wait_seconds = size, wait_seconds
        # A semaphore would take ten times as long.
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self._places.put(None)
        self._idle: list[PooledConnection] = []
        self._pid = os.getpid()

    def connection(self) -> "CheckedOut":
        return CheckedOut(self)

    def take(self) -> PooledConnection:
        """Waits while all are lent."""
        try:
            self._places.get(timeout=self._wait_seconds)
        except Empty:
            raise PoolExhausted(self._size, self._wait_seconds or 0) from None
        try:
            self._forget_inherited()
            while self._idle:
                pooled = self._idle.pop()
                if pooled.is_fresh() or _answers(pooled.connection):
                    return pooled
                pooled.connection.close()
            return PooledConnection(connect.connect_sync(self._url, use_pooler=self._use_pooler))
        except BaseException:
            self._places.put(None)
            raise

    def give_back(self, pooled: PooledConnection) -> None:
        try:
            if _is_reusable(pooled.connection):
                pooled.rested_at = time.monotonic()
                self._idle.append(pooled)
            else:
                pooled.connection.close()
        finally:
            self._places.put(None)

    def close(self) -> None:
        self._forget_inherited()
        while self._idle:
            self._idle.pop().connection.close()

    def _forget_inherited(self) -> None:
        if self._pid != os.getpid():
            # Sockets shared with the parent of a fork must not be used, nor closed politely.
            self._idle, self._pid = [], os.getpid()


class CheckedOut:
    """A connection while a `with` lasts; written out, because every enqueue pays for it."""

    __slots__ = ("_checked_out", "_pool")

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool

    def __enter__(self) -> Connection[Any]:
        self._checked_out = self._pool.take()
        return self._checked_out.connection

    def __exit__(self, *_: object) -> None:
        self._pool.give_back(self._checked_out)


class AsyncPool:
    """Lends connections inside one event loop, at most `size` at a time; who waits longer than
    `wait_seconds` for one gets PoolExhausted."""

    def __init__(
        self,
        url: str,
        *,
        size: int,
        use_pooler: bool = False,
        wait_seconds: float | None = None,
    ) -> None:
        self._url, self._use_pooler = url, use_pooler
        self._size, self._wait_seconds = size, wait_seconds
        self._places = asyncio.Semaphore(size)
        self._idle: list[tuple[AsyncConnection[Any], float]] = []
        self._pid = os.getpid()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        await self._wait_for_place()
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        finally:
            self._places.release()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop()[0].close()

    def abandon(self) -> None:
        """Close from outside the event loop, which may be gone; not what a fork inherited."""
        while self._idle:
            connection, _ = self._idle.pop()
            if self._pid == os.getpid():
                connection.pgconn.finish()

    async def _wait_for_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise PoolExhausted(self._size, self._wait_seconds or 0) from None

    async def _take(self) -> AsyncConnection[Any]:
        while self._idle:
            connection, since = self._idle.pop()
            if _is_fresh(connection, since) or await _aanswers(connection):
                return connection
            await connection.close()
        return await connect.connect(self._url, name="mainspring", use_pooler=self._use_pooler)

    async def _give_back(self, connection: AsyncConnection[Any]) -> None:
        if _is_reusable(connection):
            OUTAGES.answers(self._url, "mainspring")
            self._idle.append((connection, time.monotonic()))
        else:
            await connection.close()


async def areset(connection: AsyncConnection[Any]) -> None:
    """Undo what a handler has set for the session: role, settings, locks, temporary objects."""
    if not _can_be_reset(connection):
        return
    try:
        await connection.execute(_RESET)
    except psycopg.Error:
        # What was done on it is done; it is only not lent again.
        await connection.close()


def reset(connection: Connection[Any]) -> None:
    """The same on a blocking connection."""
    if not _can_be_reset(connection):
        return
    try:
        connection.execute(_RESET)
    except psycopg.Error:
        connection.close()


def _can_be_reset(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    # Behind a pooler, which also means no prepares, the session is another one by now.
    return connection.prepare_threshold is not None and _is_reusable(connection)


def _is_reusable(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    # Of a connection that is closed nothing is known.
    return connection.pgconn.transaction_status == TransactionStatus.IDLE


def _is_fresh(connection: AsyncConnection[Any], since: float) -> bool:
    return time.monotonic() - since < _RESTED_AFTER and not _watch(connection.pgconn.socket)()


if sys.platform == "win32":

    def _watch(socket: int) -> Callable[[], bool]:
        return lambda: bool(select.select([socket], [], [], 0)[0])

else:

    def _watch(socket: int) -> Callable[[], bool]:
        """Tells whether something can be read from it."""
        # Not select.select, which knows only the first 1024 descriptors of a process.
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return lambda: bool(poll.poll(0))


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
