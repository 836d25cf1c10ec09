"""What a scheduler does beside firing; none of it waits for, or fails with, another duty.

    close_overdue   runs that go on for longer than their schedule allows
    release_turns   waiting runs whose turn has come unnoticed
    count_runs      figures of runs

A run that makes a statement over many of them fail is set aside, and the others go on
(`runtime/maintenance/batches.py`).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.runtime.loop import Failures
from mainspring.runtime.maintenance.batches import Batch, run_batch
from mainspring.store import due_schedules as store
from mainspring.store import slots as slot_store

Duty = Callable[[AsyncConnection[Any]], Awaitable[object]]

_BATCH = 100
_OVERDUE = Batch(
    "close_overdue",
    partial(store.overdue_runs, limit=_BATCH),
    partial(store.find_overdue, limit=_BATCH),
)
_TURNS = Batch("release_turns", store.release_turns, store.find_turns)


class Duties:
    """Tries each duty in turn, whatever became of the ones before it."""

    def __init__(self, connection: ReconnectingConnection, more: Sequence[Duty] = ()) -> None:
        self._connection = connection
        every = (_close_overdue, _release_turns, *more, _count_runs)
        self._duties = [(duty, Failures(getattr(duty, "__name__", "duty"))) for duty in every]

    async def run(self) -> None:
        """Raises only if the database cannot be reached."""
        for duty, failures in self._duties:
            try:
                await self._connection.try_once(duty)
            except psycopg.Error as error:
                failures.note(error)
            else:
                failures.end()


async def _close_overdue(connection: AsyncConnection[Any]) -> None:
    if closed := await run_batch(connection, _OVERDUE):
        job_ids = telemetry.first(job_id for job_id, _ in closed)
        schedules = telemetry.first(sorted({name for _, name in closed}))
        telemetry.event("runs_timed_out", count=len(closed), job_ids=job_ids, schedules=schedules)


async def _release_turns(connection: AsyncConnection[Any]) -> None:
    await run_batch(connection, _TURNS)


async def _count_runs(connection: AsyncConnection[Any]) -> None:
    for _ in range(10):
        if not await slot_store.count_runs(connection):
            return
