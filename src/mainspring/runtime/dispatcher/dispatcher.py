"""A dispatcher: turns events into jobs as soon as they are committed, beside a scheduler.

Any number may run. Each takes events that no other holds, and what it holds is free again when its
transaction ends, however it ends. So one that dies costs the others a second and no event.
"""

from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.connect import for_own_statements, with_options
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.health import Pulse
from mainspring.domain.retention import RetentionKind
from mainspring.runtime.dispatcher.batches import RoundRobin
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance.pruning import CleanupTaken
from mainspring.runtime.maintenance.records import RecordPruner
from mainspring.settings import Settings
from mainspring.store import events as store

_LONGEST_REST = 15.0
_LOCKED_REST = 1.0
_PRUNE_EVERY = 3600.0
_OPTIONS = " ".join(
    (
        # One that is paused in the middle of a transaction must not keep its events locked.
        "-c idle_in_transaction_session_timeout=5s",
        # Nor may one tenant's events hold up those of others, nor whoever has a job of theirs open.
        "-c statement_timeout=15s",
        "-c lock_timeout=1s",
        # A bitmap visits the handled events each time anew; an index scan marks them.
        "-c enable_bitmapscan=off",
    )
)


class Dispatcher:
    """Two loops, each with a connection, so that an event does not wait until old ones are pruned;
    whoever runs it wakes its loop when an event was emitted."""

    def __init__(self, url: str, *, settings: Settings) -> None:
        self._settings = settings
        self._round_robin = RoundRobin(settings)
        limit = f"-c mainspring.max_payload_bytes={settings.max_payload_bytes}"
        connect = partial(
            ReconnectingConnection,
            with_options(for_own_statements(url), f"{_OPTIONS} {limit}"),
            use_pooler=settings.use_pooler,
            pins_plans=True,
        )
        self._connection = connect(name="mainspring dispatch")
        self._pruning_connection = connect(name="mainspring event pruning")
        self._pruner = RecordPruner(
            self._pruning_connection.try_once,
            RetentionKind.EVENTS,
            fallback=timedelta(days=settings.event_retention_days),
        )
        self.loop = Loop("dispatch", self._pass)
        self.pruning = Loop("events", self._prune)

    def duties(self) -> tuple[Coroutine[Any, Any, None], ...]:
        return self.loop.run(), self.pruning.run()

    def pulse(self) -> Pulse:
        """For any thread."""
        awaits_database = self._connection.waiting_since is not None
        return self.loop.rounds.pulse(awaits_database=awaits_database)

    async def close(self) -> None:
        await self._connection.close()
        await self._pruning_connection.close()

    async def _pass(self) -> float:
        while await self._connection.try_once(self._round_robin.dispatch):
            pass
        return await self._connection.try_once(self._rest)

    async def _rest(self, connection: AsyncConnection[Any]) -> float:
        longest = self._settings.poll_seconds if self._settings.use_pooler else _LONGEST_REST
        # What waits still is another's; should it die, nobody is told.
        return min(longest, _LOCKED_REST) if await store.has_unhandled(connection) else longest

    async def _prune(self) -> float:
        with suppress(CleanupTaken):
            await self._pruner.prune()
        return _PRUNE_EVERY
