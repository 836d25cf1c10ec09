"""What keeps the queue going besides running jobs; every worker does it, whoever is first.

due       jobs whose instant has come, deadlines, requested cancels: at the instant
recover   jobs of dead workers: every second
history   partitions ahead, retention: every quarter of an hour, one worker at a time
"""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.dedicated import DedicatedConnection
from mainspring.runtime.leases import host_name, is_gone
from mainspring.runtime.loop import Loop
from mainspring.store import attempts, history, waits, workers

_LONGEST_REST = 1.0
_HISTORY_EVERY = 900.0
_BATCH = 1000


class Maintenance:
    """Three loops on one connection."""

    def __init__(
        self,
        connection: DedicatedConnection,
        *,
        definitions: Sequence[str],
        max_losses: int,
        on_ready: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._definitions = definitions
        self._max_losses = max_losses
        self._on_ready = on_ready
        self.due = Loop("due", self._pass_due)
        self.recovery = Loop("recovery", self._pass_recovery)
        self.history = Loop("history", self._pass_history)

    async def _pass_due(self) -> float:
        return await self._connection.try_once(self._end_waits)

    async def _pass_recovery(self) -> float:
        await self._connection.try_once(self.recover)
        return random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_history(self) -> float:
        for duty in (
            history.ensure_partitions,
            history.drop_partitions,
            workers.prune_workers,
            attempts.adopt_orphans,
        ):
            await self._connection.try_once(duty)
        # Batch by batch, so that the other loops get the connection in between.
        for prune in (history.prune_jobs, history.prune_keys):
            while await self._connection.try_once(prune):
                pass
        return _HISTORY_EVERY * random.uniform(0.8, 1.2)  # noqa: S311 - only jitter

    async def _end_waits(self, connection: AsyncConnection[Any]) -> float:
        promoted = await waits.promote(connection)
        released = await waits.release_known(connection, self._definitions)
        await waits.expire(connection)
        await waits.settle_cancels(connection)
        if ready := {*promoted, *released}:
            await workers.wake(connection, ready)
            self._on_ready()
        if len(promoted) == _BATCH or len(released) == _BATCH:
            return 0.0
        next_due = await waits.next_due(connection)
        return min(_LONGEST_REST, max(next_due or _LONGEST_REST, 0.0))

    async def recover(self, connection: AsyncConnection[Any]) -> None:
        """Take back what dead workers held, the ones known dead on this host at once."""
        neighbours = await workers.neighbours(connection, host_name())
        if dead := [worker_id for worker_id, identity in neighbours if is_gone(identity)]:
            await workers.expire_workers(connection, dead)
        if not await workers.has_expired(connection):
            return
        while True:
            lost = await attempts.recover(
                connection, max_losses=self._max_losses, jitter=timedelta(seconds=1), limit=_BATCH
            )
            _tell_lost(lost)
            if len(lost) < _BATCH:
                break
        await workers.note_recovered(connection)
        self.due.wake()


def _tell_lost(lost: Sequence[attempts.LostJob]) -> None:
    if not lost:
        return
    parked = [job.job_id for job in lost if job.is_parked]
    by_worker = sorted({job.worker_id for job in lost})
    telemetry.event("job_recovered", jobs=len(lost) - len(parked), workers=by_worker)
    for job_id in parked:
        telemetry.event("job_parked", job_id=job_id)
