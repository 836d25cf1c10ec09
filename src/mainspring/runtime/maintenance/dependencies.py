"""Dependencies: lets the children of jobs that ended go; every worker does it, whoever is first.

A worker knows which of the jobs it ended others wait for. What ends in another way, or whose worker
dies in between, is found by a sweep every few seconds, page by page.
"""

import random
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.sqlstates import is_of_a_row
from mainspring.domain.types import JobId
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance.batches import Batch, run_batch
from mainspring.store import flows
from mainspring.store.flows import Settled, SweepPlace

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
        self._place: SweepPlace | None = None  # Of a sweep that is under way.

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
        is_ours = await (self._settle_ended if self._ended else self._sweep)(connection)
        if not is_ours:
            return _SOON * random.uniform(0.5, 1.5)  # noqa: S311 - only jitter
        if self._ended or self._is_sweep_due or self._place is not None:
            return 0.0
        return _SWEEP_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _settle_ended(self, connection: AsyncConnection[Any]) -> bool:
        ended = list(islice(self._ended, _PAGE))
        settled = await settle(connection, ended)
        if settled.is_ours:
            self._ended.difference_update(ended)
            self._note(settled)
        return settled.is_ours

    async def _sweep(self, connection: AsyncConnection[Any]) -> bool:
        """One page of it."""
        if self._place is None:
            self._is_sweep_due, self._place = False, SweepPlace()
        settled = await settle(connection, place=self._place)
        if settled.is_ours:
            self._place = settled.next
            self._note(settled)
        return settled.is_ours

    def _note(self, settled: Settled) -> None:
        if settled.total:
            self._on_ready()
            # What was resolved may have canceled children, which are parents themselves.
            self._is_sweep_due = True


async def settle(
    connection: AsyncConnection[Any],
    parents: Sequence[JobId] | None = None,
    place: SweepPlace = SweepPlace(),  # noqa: B008 - it cannot be changed
) -> Settled:
    """Settle the children of these parents, or what is on one page of a sweep. A child that cannot
    be settled is set aside."""
    try:
        if parents is not None:
            return await flows.settle(connection, parents)
        return await flows.settle_page(connection, place)
    except psycopg.Error as error:
        if not is_of_a_row(error.sqlstate):
            raise
        return await _settle_apart(connection, parents, place)


async def _settle_apart(
    connection: AsyncConnection[Any], parents: Sequence[JobId] | None, place: SweepPlace
) -> Settled:
    """The same in two steps: the outcomes of dependencies, then their children."""
    children = await flows.decide_outcomes(connection, parents, place)

    async def run(connection: AsyncConnection[Any], chosen: Sequence[int] | None) -> list[int]:
        return [await flows.settle_children(connection, children if chosen is None else chosen)]

    async def find(_: AsyncConnection[Any]) -> list[JobId]:
        return children

    counts = await run_batch(connection, Batch("settle", run, find))
    if parents is not None:
        return Settled(is_ours=True, total=sum(counts))
    # Without what was set aside the page passes, and says where the next begins.
    settled = await flows.settle_page(connection, place)
    return settled._replace(total=settled.total + sum(counts))


async def resolve_all(connection: AsyncConnection[Any]) -> int:
    """Resolve whatever can be; how much that was."""
    total = 0
    while (resolved := (await flows.settle(connection, None)).total) > 0:
        total += resolved
    return total
