"""What keeps the queue going besides running jobs; every worker does it, whoever is first.

    due           jobs whose instant has come: at the instant
    tidy          deadlines, requested cancels, jobs that waited for a handler: every few seconds
    recovery      jobs of dead workers: every second
    grants        which jobs that wait for a limit can go: when a place is free, and every second
    dependencies  jobs that wait for others: when one of those ends, and every few seconds
    history       partitions ahead, retention: every quarter of an hour

A pass that finds nothing costs an index probe or two, and an idle worker makes about four a
second in all.
"""

import random
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.notifications import Notification, NotificationKind
from mainspring.runtime.executors import orphans
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance.dependencies import DependencyResolver
from mainspring.runtime.maintenance.housekeeping import remove_in_batches
from mainspring.runtime.maintenance.limit_grants import Grants
from mainspring.runtime.worker.claimer import Claimer
from mainspring.runtime.worker.lease import host_name, is_gone
from mainspring.store import (
    approvals,
    attempts,
    flows,
    history,
    idempotency,
    limits,
    tallies,
    tokens,
    waits,
    workers,
)

_BUSY_REST = 1.0
_IDLE_REST = 15.0
_TIDY_EVERY = 3.0
_HISTORY_EVERY = 900.0
_BATCH = 1000


class Maintenance:
    """Six loops on one connection, for a worker whose claimer is woken when jobs become ready."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        claimer: Claimer,
        grants: Grants,
        *,
        definitions: Sequence[str],
        kinds: Sequence[str],
        max_losses: int,
        use_pooler: bool,
    ) -> None:
        self._connection = connection
        self._definitions = definitions
        self._kinds = kinds
        self._max_losses = max_losses
        self._claimer, self._use_pooler = claimer, use_pooler
        self.due = Loop("due", self._pass_due)
        self.tidy = Loop("tidy", self._pass_tidy)
        self.recovery = Loop("recovery", self._pass_recovery)
        self.history = Loop("history", self._pass_history)
        self.grants = grants
        self.dependencies = DependencyResolver(connection, on_ready=claimer.wake)

    @property
    def loops(self) -> tuple[Loop, ...]:
        own = (self.due, self.tidy, self.recovery, self.history)
        return (*own, self.grants.loop, self.dependencies.loop)

    def on_notification(self, notification: Notification) -> None:
        match notification:
            case (NotificationKind.JOB_DUE, _):
                self.due.wake()
            case (NotificationKind.LIMIT_FREED, ""):
                self.grants.limits_changed()
            case (NotificationKind.LIMIT_FREED, key):
                self.grants.limit_freed(key)
            case (NotificationKind.PARENT_ENDED, _):
                self.dependencies.sweep_soon()

    def check_all(self) -> None:
        """Notifications may have been missed."""
        self.due.wake()
        self.grants.limits_changed()
        self.dependencies.sweep_soon()

    async def _pass_due(self) -> float:
        return await self._connection.try_once(self._promote)

    async def _pass_tidy(self) -> float:
        await self._connection.try_once(self._tidy)
        return _TIDY_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_recovery(self) -> float:
        await self._connection.try_once(self.recover)
        return random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_history(self) -> float:
        for duty in (
            history.ensure_partitions,
            history.drop_partitions,
            workers.prune_workers,
            tokens.prune,
            idempotency.prune_replies,
        ):
            await self._connection.try_once(duty)
        # Batch by batch, so that the other loops get the connection in between.
        for prune in (
            history.prune_jobs,
            history.prune_keys,
            limits.prune_buckets,
            approvals.prune,
            flows.prune_flows,
            flows.prune_dependencies,
        ):
            await remove_in_batches(partial(self._connection.try_once, prune))
        return _HISTORY_EVERY * random.uniform(0.8, 1.2)  # noqa: S311 - only jitter

    async def _promote(self, connection: AsyncConnection[Any]) -> float:
        promoted = await waits.promote(connection)
        await self._announce(connection, promoted)
        if len(promoted) == _BATCH:
            return 0.0
        # Enqueues notify idle workers of jobs due soon; a busy one asked not to be.
        is_notified = self._claimer.wants_wake and not self._use_pooler
        rest = _IDLE_REST if is_notified else _BUSY_REST
        next_due = await waits.next_due(connection)
        return rest if next_due is None else min(rest, max(next_due, 0.0))

    async def _tidy(self, connection: AsyncConnection[Any]) -> None:
        released = await waits.release_known(connection, self._definitions, self._kinds)
        await self._announce(connection, released)
        ended = await waits.expire(connection)
        ended += await waits.settle_cancels(connection)
        ended += await approvals.expire(connection)
        await tallies.fold(connection)
        if ended:
            self.grants.scan_soon()
            self.dependencies.sweep_soon()

    async def _announce(
        self, connection: AsyncConnection[Any], released: Sequence[waits.Released]
    ) -> None:
        if queues := {each.queue for each in released if not each.is_limited}:
            await workers.wake(connection, queues)
            self._claimer.wake()
        if any(each.is_limited for each in released):
            self.grants.scan_soon()

    async def recover(self, connection: AsyncConnection[Any]) -> None:
        if await recover(connection, max_losses=self._max_losses):
            self.check_all()


async def recover(connection: AsyncConnection[Any], *, max_losses: int) -> bool:
    """Take back what dead workers had claimed, the ones known dead on this host at once."""
    watched = await workers.watch(connection, host_name())
    gone = [w for w in watched if not w.is_expired and is_gone(w.process_identity)]
    if gone:
        # Their commands are orphans; the jobs are about to run again.
        orphans.end_left_over({worker.process_identity for worker in gone})
        await workers.expire_workers(connection, [worker.worker_id for worker in gone])
    has_expired = any(worker.is_expired for worker in watched)
    if not await attempts.adopt_orphans(connection) and not gone and not has_expired:
        return False
    while True:
        lost = await attempts.recover(
            connection, max_losses=max_losses, jitter=timedelta(seconds=1), limit=_BATCH
        )
        _log_lost(lost)
        if len(lost) < _BATCH and not await attempts.adopt_orphans(connection):
            break
    await workers.note_recovered(connection)
    return True


def _log_lost(lost: Sequence[attempts.LostJob]) -> None:
    if not lost:
        return
    parked = [job.job_id for job in lost if job.is_parked]
    by_worker = sorted({job.worker_id for job in lost})
    telemetry.event("job_recovered", jobs=len(lost) - len(parked), workers=by_worker)
    for job_id in parked:
        telemetry.event("job_parked", job_id=job_id)
