"""The row of a scheduler or a server in `processes`: its sign of life, every few seconds.

A worker has none, since its lease is its sign of life (`runtime/worker/lease.py`).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.db import migrate
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.processes import Activity, ClockReading, ProcessFacts, ProcessKind
from mainspring.runtime.loop import Loop
from mainspring.runtime.stopwatch import Stopwatch
from mainspring.runtime.worker.lease import host_name, process_identity
from mainspring.store import processes as store

Action = Callable[[AsyncConnection[Any]], Awaitable[Any]]
RunAction = Callable[[Action], Awaitable[Any]]

_LONGEST_REST = 5.0
_LAST_WORDS_SECONDS = 3


class Heartbeat:
    """Keeps one row; `run_action` runs an action on some connection in autocommit, once."""

    def __init__(
        self,
        facts: ProcessFacts,
        run_action: RunAction,
        activity: Callable[[], Activity],
        *,
        lease_seconds: float,
    ) -> None:
        self._facts, self._run_action, self._activity = facts, run_action, activity
        self._lease = timedelta(seconds=lease_seconds)
        self._rest = min(lease_seconds / 3, _LONGEST_REST)
        self._process_id: int | None = None
        self._clock: ClockReading | None = None
        self._stopping = asyncio.Event()
        self.loop = Loop(f"{facts.kind} heartbeat", self._beat)

    async def run(self) -> None:
        """Until `stop`; then the row is removed, if the database is there."""
        beating = asyncio.create_task(self.loop.run())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((beating, stopping), return_when=asyncio.FIRST_COMPLETED)
            if beating.done():
                await beating
        finally:
            beating.cancel()
            stopping.cancel()
            await asyncio.gather(beating, stopping, return_exceptions=True)
            await self._leave()

    def stop(self) -> None:
        self._stopping.set()

    def hurry(self) -> None:
        """It waits for nothing as it is."""

    async def _beat(self) -> float:
        await self._run_action(self._renew)
        return self._rest

    async def _renew(self, connection: AsyncConnection[Any]) -> None:
        if self._process_id is None:
            await self._register(connection)
            # The first renewal reads the clock, and the next stores what it read.
            await self._store(connection)
        if not await self._store(connection):
            self._process_id = None
            self.loop.wake()

    async def _register(self, connection: AsyncConnection[Any]) -> None:
        await store.prune(connection)
        self._process_id = await store.register(
            connection, self._facts, self._activity(), lease=self._lease
        )

    async def _store(self, connection: AsyncConnection[Any]) -> bool:
        """Whether the row is still there."""
        if self._process_id is None:
            return False
        watch = Stopwatch()
        database_at = await store.renew(
            connection,
            self._process_id,
            self._activity(),
            lease=self._lease,
            clock=self._clock,
        )
        if database_at is not None:
            self._clock = watch.read(database_at)
        return database_at is not None

    async def _leave(self) -> None:
        """Who does not leave is silent, and gone after an hour."""
        if self._process_id is None:
            return
        with suppress(TimeoutError, psycopg.Error, DatabaseError, OSError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._run_action(partial(store.remove, process_id=self._process_id))


def process_facts(kind: ProcessKind, version: str) -> ProcessFacts:
    """Of this process in one of its roles."""
    return ProcessFacts(
        kind=kind,
        name=f"{host_name()}:{os.getpid()}",
        host=host_name(),
        pid=os.getpid(),
        identity=process_identity(),
        version=version,
        schema_number=migrate.newest(),
    )
