"""Stragglers: ready jobs below the marks, where a sweep for them takes long.

While a transaction somewhere keeps dead entries from being removed, a sweep walks over all of them.
Then the claimer sweeps above its marks only, and this looks below them. A walk is slow, so it
shares no connection with what else keeps promises; a ready job waits for it, so it shares none with
what tidies. The connection is opened for the first walk. What is found is named to the claimer. The
marks are noted as floors for workers that start; `domain/claiming/lanes.py` has the whole of it.
"""

import time
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.runtime.loop import Loop
from mainspring.runtime.worker.claimer import Claimer
from mainspring.store import lanes as store

_LOOK_EVERY = 1.0
# It has a quarter of the time of one connection.
_COST_FACTOR = 4.0


class Stragglers:
    """The duty of one worker."""

    def __init__(self, connection: ReconnectingConnection, claimer: Claimer) -> None:
        self.loop = Loop("stragglers", self._pass)
        self._connection, self._claimer = connection, claimer

    async def _pass(self) -> float:
        if not self._claimer.lanes.is_dear:
            return _LOOK_EVERY
        cost = await self._connection.try_once(self._look)
        return max(_LOOK_EVERY, cost * _COST_FACTOR)

    async def _look(self, connection: AsyncConnection[Any]) -> float:
        """How long the walk took."""
        lanes = self._claimer.lanes
        floors, began_at = lanes.floors, time.monotonic()
        found = await store.find_below(connection, floors)
        cost = time.monotonic() - began_at
        for lane, job_ids in found.items():
            self._claimer.jobs_ready(lane, job_ids)
        await store.note_floors(connection, floors, seconds=cost)
        lanes.sweep_cost = cost
        return cost
