"""Pruning: removes what is past its retention, in short statements, one worker at a time.

Every statement runs in a transaction that sets a timeout for itself and for the locks it waits for,
and that takes the lock of whoever cleans up. Who does not get it leaves the rest to the other.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.pruning import PruneWindow, WindowWidth
from mainspring.runtime.maintenance.batches import Batch, run_batch
from mainspring.store import history
from mainspring.store import housekeeping as store
from mainspring.store.rows.pages import Keys, Page

T = TypeVar("T")
Action = Callable[[AsyncConnection[Any]], Awaitable[T]]
Note = Callable[[int], object]

_LOCK = "mainspring.cleanup"
_STATEMENT_SECONDS = 10.0
_DROP_TRIES = 5
_DROP_PAUSE = 0.5


class CleanupTaken(Exception):
    """Another worker cleans up at the moment."""


class RunAction(Protocol):
    """Runs an action on a connection, as `ReconnectingConnection.try_once` does."""

    def __call__(self, action: Action[T], /) -> Awaitable[T]: ...


async def bounded(
    connection: AsyncConnection[Any],
    action: Action[T],
    *,
    seconds: float = _STATEMENT_SECONDS,
    lock: str = _LOCK,
) -> T:
    """Run statements of at most so many seconds in a transaction; raises CleanupTaken."""
    async with connection.transaction():
        if not await store.begin_cleanup(connection, statement_ms=int(seconds * 1000), lock=lock):
            raise CleanupTaken
        return await action(connection)


def nothing(_: int) -> None:
    """Does not care how far a removal is."""


async def remove_in_batches(remove: Callable[[], Awaitable[int]], note: Note = nothing) -> int:
    """Remove until there is nothing left; each batch is a transaction of its own, and between them
    others are served. `note` is called with how many were removed so far."""
    removed = 0
    while count := await remove():
        removed += count
        note(removed)
    return removed


async def remove_by_pages(
    run: RunAction, prune: Callable[[AsyncConnection[Any], Keys], Awaitable[Page]], first: Keys
) -> int:
    """Look at a whole table, page by page; how many rows were removed."""
    removed, behind = 0, first
    while True:
        page = await run(lambda c, b=behind: bounded(c, lambda c: prune(c, b)))  # type: ignore[misc]
        if page.last is None:
            return removed
        removed, behind = removed + page.removed, page.last


async def drop_partitions(run: RunAction) -> int:
    """Drop the days that are past every retention, each in a transaction of its own; how many. One
    that someone keeps locked is left for the next pass."""
    dropped = 0
    for name in await run(history.past_partitions):
        dropped += await _drop_partition(run, name)
    return dropped


async def _drop_partition(run: RunAction, name: str) -> bool:
    for attempt in range(_DROP_TRIES):
        try:
            await run(lambda c: bounded(c, lambda c: history.drop_partition(c, name)))
        except psycopg.errors.LockNotAvailable:
            # Between two tries whoever waited behind us goes on.
            await asyncio.sleep(_DROP_PAUSE * (attempt + 1))
        else:
            return True
    return False


class HistoryPruner:
    """Removes finished jobs whose retention has passed."""

    def __init__(self, run: RunAction) -> None:
        self._run = run
        self._width = WindowWidth()

    async def prune(self, note: Note = nothing) -> int:
        """How many jobs were removed; raises CleanupTaken."""
        windows = await self._run(history.windows)
        removed = 0
        for window in windows:
            removed += await self._prune_window(window, lambda n, r=removed: note(r + n))  # type: ignore[misc]
        keeps = [window.keep for window in windows]
        await self._run(lambda c: history.forget_pruned(c, keeps))
        return removed

    async def _prune_window(self, window: PruneWindow, note: Note) -> int:
        async def prune(part: PruneWindow) -> int:
            return len(await self._run(lambda c: _prune(c, part)))

        async def done(part: PruneWindow) -> None:
            await self._run(lambda c: history.note_pruned(c, part))

        parts = WindowParts(self._width, limit=history.BATCH, prune=prune, done=done)
        return await parts.remove(window, note)


@dataclass(frozen=True, slots=True)
class WindowParts:
    """Prunes a window part by part: each statement looks at as much as takes it a moment, and
    `done` is called with a part that has nothing left."""

    width: WindowWidth
    limit: int
    prune: Callable[[PruneWindow], Awaitable[int]]
    done: Callable[[PruneWindow], Awaitable[object]]

    async def remove(self, window: PruneWindow, note: Note = nothing) -> int:
        """How many rows were removed."""
        removed = 0
        while not window.is_empty:
            part = window.first(self.width.seconds)
            began_at = time.monotonic()
            try:
                gone = await self.prune(part)
            except psycopg.errors.QueryCanceled:
                if not self.width.narrow():
                    raise
                continue
            self.width.took(time.monotonic() - began_at)
            removed += gone
            note(removed)
            if gone < self.limit:
                await self.done(part)
                window = window._replace(after=part.before)
        return removed


async def _prune(connection: AsyncConnection[Any], window: PruneWindow) -> list[int]:
    async def run(connection: AsyncConnection[Any], chosen: Sequence[int] | None) -> list[int]:
        limit = history.BATCH if chosen is None else len(chosen)
        return await bounded(
            connection, lambda c: history.prune_jobs(c, window, chosen, limit=limit)
        )

    async def find(connection: AsyncConnection[Any]) -> list[int]:
        return await bounded(connection, lambda c: history.find_past_jobs(c, window))

    return await run_batch(connection, Batch("prune_jobs", run, find))
