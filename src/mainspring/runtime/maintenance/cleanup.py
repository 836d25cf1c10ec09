"""What tidies: figures, partitions, retention, flows that are gone, and indexes that have grown.

Nothing waits for it, so it has a connection of its own: a slow statement here delays no promotion,
no recovery and no grant. Every duty is tried, whatever became of the ones before it.
"""

import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.retention import RetentionKind
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance import figures
from mainspring.runtime.maintenance.indexes import rebuild_indexes
from mainspring.runtime.maintenance.pruning import (
    CleanupTaken,
    HistoryPruner,
    bounded,
    drop_partitions,
    remove_by_pages,
    remove_in_batches,
)
from mainspring.runtime.maintenance.records import RecordPruner
from mainspring.store import (
    approvals,
    error_groups,
    flows,
    history,
    idempotency,
    lanes,
    limits,
    processes,
    recovery,
    set_aside,
    tokens,
    workers,
)
from mainspring.store import housekeeping as store

_FIGURES_EVERY = 5.0
_COMPACTED_EVERY = 60.0
_HISTORY_EVERY = 900.0
# What PostgreSQL counts as operational, but the connection lives on.
_OF_STATEMENT = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)

Duty = Callable[[], Awaitable[object]]


class Cleanup:
    """Two loops on one connection; of all workers one at a time cleans up."""

    def __init__(self, connection: ReconnectingConnection, *, use_pooler: bool = False) -> None:
        self._connection, self._use_pooler = connection, use_pooler
        self._pruner = HistoryPruner(connection.try_once)
        self._compact_at = 0.0
        self._audit = RecordPruner(connection.try_once, RetentionKind.AUDIT)
        self.figures = Loop("figures", self._pass_figures)
        self.history = Loop("history", self._pass_history)

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self.figures, self.history)

    async def _pass_figures(self) -> float:
        await self._connection.try_once(figures.look)
        if time.monotonic() >= self._compact_at:
            await self._connection.try_once(figures.compact)
            self._compact_at = time.monotonic() + _COMPACTED_EVERY
        if await self._connection.try_once(error_groups.fold):
            return 0.0
        return _FIGURES_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_history(self) -> float:
        try:
            for name, duty in self._duties().items():
                await self._try(name, duty)
        except CleanupTaken:
            pass  # The other does the rest as well.
        return _HISTORY_EVERY * random.uniform(0.8, 1.2)  # noqa: S311 - only jitter

    def _duties(self) -> dict[str, Duty]:
        run = self._connection.try_once
        return {
            "partitions": partial(self._once, history.ensure_partitions),
            "past partitions": partial(drop_partitions, run),
            "workers": partial(self._once, workers.prune_workers),
            "processes": partial(self._once, processes.prune),
            "floors": partial(self._once, lanes.prune_floors),
            "orphans": partial(self._once, recovery.adopt_orphans),
            "tokens": partial(self._once, tokens.prune),
            "replies": partial(self._once, idempotency.prune_replies),
            "history": self._pruner.prune,
            "audit": self._audit.prune,
            "outputs": partial(self._batches, history.prune_outputs),
            "keys": partial(self._batches, history.prune_keys),
            "buckets": partial(self._batches, limits.prune_buckets),
            "rows set aside": partial(self._batches, set_aside.prune),
            "errors": partial(self._batches, error_groups.prune),
            "approvals": partial(remove_by_pages, run, approvals.prune, (0,)),
            "jobs of flows": partial(remove_by_pages, run, flows.prune_jobs, (0, 0)),
            "flows": partial(remove_by_pages, run, flows.prune_flows, (0,)),
            "dependencies": partial(remove_by_pages, run, flows.prune_dependencies, (0, 0)),
            "constraints": self._validate_constraints,
            "indexes": self._rebuild_indexes,
        }

    async def _try(self, name: str, duty: Duty) -> None:
        """One that fails keeps none of the others from their turn."""
        try:
            await duty()
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError) and not isinstance(error, _OF_STATEMENT):
                raise
            telemetry.event("cleanup_failed", duty=name, error=str(error))

    async def _validate_constraints(self) -> None:
        for table, name in await self._connection.try_once(store.unvalidated_constraints):
            validate = partial(store.validate_constraint, table=table, name=name)
            await self._try(f"constraint {name}", partial(self._once, validate, seconds=300))

    async def _rebuild_indexes(self) -> None:
        if not self._use_pooler:  # A pooler gives each statement another session.
            await self._connection.try_once(rebuild_indexes)

    async def _once(
        self, action: Callable[[AsyncConnection[Any]], Awaitable[object]], *, seconds: float = 10
    ) -> None:
        await self._connection.try_once(partial(bounded, action=action, seconds=seconds))

    async def _batches(self, prune: Callable[[AsyncConnection[Any]], Awaitable[int]]) -> int:
        return await remove_in_batches(
            lambda: self._connection.try_once(partial(bounded, action=prune))
        )
