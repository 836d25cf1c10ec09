"""Dependencies: lets the children of jobs that ended go; every worker does it, whoever is first.

A worker knows which of the jobs it ended others wait for. What ends in another way, or whose worker
dies in between, is found by a sweep every few seconds.
"""

import random
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.types import JobId
from mainspring.runtime.loop import Loop
from mainspring.store import flows

_PAGE = 1000
_SWEEP_EVERY = 3.0
_SOON = 0.01


class DependencyResolver:
    """The duty of one worker; `on_ready` is called when something may be claimed."""

    def __init__(self, connection: ReconnectingConnection, *, on_ready: Callable[[], None]) -> None:
        self.loop = Loop("dependencies", self._pass)
        self._connection = connection
        self._on_ready = on_ready
        self._ended: set[JobId] = set()
        self._is_sweep_due = True

    def parents_ended(self, parents: Collection[JobId]) -> None:
        """These jobs have ended, and others wait for them."""
        self._ended.update(parents)
        self.loop.wake()

    def sweep_soon(self) -> None:
        """A job that others wait for may have ended."""
        self._is_sweep_due = True
        self.loop.wake()

    async def _pass(self) -> float:
        return await self._connection.try_once(self._resolve)

    async def _resolve(self, connection: AsyncConnection[Any]) -> float:
        ended = list(islice(self._ended, _PAGE))
        is_ours, resolved = await flows.settle(connection, ended or None)
        if not is_ours:
            return _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        self._ended.difference_update(ended)
        if resolved:
            self._on_ready()
        # What was resolved may have canceled children, which are parents themselves.
        self._is_sweep_due = resolved > 0 or (self._is_sweep_due and bool(ended))
        if self._ended or self._is_sweep_due:
            return 0.0
        return _SWEEP_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter


async def resolve_all(connection: AsyncConnection[Any]) -> int:
    """Resolve whatever can be; how much that was."""
    total = 0
    while (resolved := (await flows.settle(connection, None))[1]) > 0:
        total += resolved
    return total
