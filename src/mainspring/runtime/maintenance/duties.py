"""What keeps the queue going besides running jobs; every worker does it, whoever is first.

    due               jobs whose instant has come: at the instant
    release_known     jobs that waited for a handler: every few seconds
    expire            jobs past their deadline: the same
    settle_cancels    jobs that were asked to stop and never started: the same
    expire_approvals  jobs that nobody approved in time: the same
    recovery          jobs of dead workers: every second
    grants            which jobs that wait for a limit can go: when a place is free, every second
    dependencies      jobs that wait for others: when one of those ends, and every few seconds

All of them keep promises, so nothing that only tidies shares their connection: that is in
`cleanup.py`. A statement over many jobs that one of them makes fail goes on without it
(`batches.py`); one that fails whatever the jobs are holds up its own loop only. A pass that finds
nothing costs an index probe or two, and an idle worker makes about four a second in all.
"""

import random
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.notifications import Notification, NotificationKind
from mainspring.domain.types import JobState
from mainspring.runtime.executors import orphans
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance.batches import Batch, run_batch
from mainspring.runtime.maintenance.dependencies import DependencyResolver
from mainspring.runtime.maintenance.limit_grants import Grants
from mainspring.runtime.worker.claimer import Claimer
from mainspring.runtime.worker.lease import host_name, is_gone
from mainspring.services.job_names import log_about
from mainspring.store import approvals, recovery, waits, workers

_BUSY_REST = 1.0
_IDLE_REST = 15.0
# Between two slices of jobs that are due at once, so that others come in between.
_SLICE = 1000
_SLICE_REST = 0.02
# What is due and could not be promoted is locked by someone.
_LOCKED_REST = 0.05
# So many jobs are named to other workers; who has more to promote starts them itself.
_FEW = 100
_WAITS_EVERY = 3.0
_BATCH = 1000
_JITTER = timedelta(seconds=1)

_PROMOTION = Batch("promote", partial(waits.promote, limit=_SLICE), waits.find_due)


async def _expire_approvals(
    connection: AsyncConnection[Any], chosen: Sequence[int] | None
) -> list[int]:
    count = await approvals.expire(connection, chosen)
    return [count] if count else []


_ENDS: tuple[Batch[Any], ...] = (
    Batch("expire", waits.expire, waits.find_late),
    Batch("settle_cancels", waits.settle_cancels, waits.find_canceled),
    Batch("expire_approvals", _expire_approvals, approvals.find_expired),
)


class Maintenance:
    """Loops on one connection, for a worker whose claimer is woken when jobs become ready."""

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
        self.known = Loop("release_known", self._pass_known)
        self.ends = tuple(Loop(end.duty, partial(self._pass_end, end)) for end in _ENDS)
        self.recovery = Loop("recovery", self._pass_recovery)
        self.grants = grants
        self.dependencies = DependencyResolver(connection, on_ready=claimer.wake)

    @property
    def loops(self) -> tuple[Loop, ...]:
        own = (self.due, self.known, *self.ends, self.recovery)
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

    async def _pass_known(self) -> float:
        await self._connection.try_once(self._release_known)
        return _WAITS_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_end(self, end: Batch[Any]) -> float:
        if await self._connection.try_once(partial(run_batch, batch=end)):
            self.grants.scan_soon()
            self.dependencies.sweep_soon()
        return _WAITS_EVERY * random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _pass_recovery(self) -> float:
        await self._connection.try_once(self.recover)
        return random.uniform(0.7, 1.0)  # noqa: S311 - only jitter

    async def _promote(self, connection: AsyncConnection[Any]) -> float:
        promoted = await run_batch(connection, _PROMOTION)
        await self._announce(connection, promoted)
        if len(promoted) == _SLICE:
            return _SLICE_REST if self._claimer.has_backlog else 0.0
        # Enqueues notify idle workers of jobs due soon; a busy one asked not to be.
        is_notified = self._claimer.wants_wake and not self._use_pooler
        rest = _IDLE_REST if is_notified else _BUSY_REST
        next_due = await waits.next_due(connection)
        return rest if next_due is None else min(rest, max(next_due, _LOCKED_REST))

    async def _release_known(self, connection: AsyncConnection[Any]) -> None:
        async def run(
            connection: AsyncConnection[Any], chosen: Sequence[int] | None
        ) -> list[waits.Released]:
            return await waits.release_known(
                connection, self._definitions, self._kinds, chosen=chosen
            )

        async def find(connection: AsyncConnection[Any]) -> list[int]:
            return await waits.find_known(connection, self._definitions, self._kinds)

        released = await run_batch(connection, Batch("release_known", run, find))
        await self._announce(connection, released)

    async def _announce(
        self, connection: AsyncConnection[Any], released: Sequence[waits.Released]
    ) -> None:
        ready = [each for each in released if not each.is_limited]
        if ready:
            self._name(ready)
            await workers.wake(connection, {each.queue for each in ready})
            if len(ready) <= _FEW:
                jobs = [(each.lane, each.job_id) for each in ready]
                await workers.announce_jobs(connection, jobs)
            self._claimer.wake()
        if any(each.is_limited for each in released):
            self.grants.scan_soon()

    def _name(self, ready: Sequence[waits.Released]) -> None:
        """Let our claimer look for these jobs wherever its marks are."""
        lanes: dict[Lane, list[int]] = {}
        for each in ready:
            lanes.setdefault(each.lane, []).append(each.job_id)
        for lane, job_ids in lanes.items():
            self._claimer.jobs_ready(lane, job_ids)

    async def recover(self, connection: AsyncConnection[Any]) -> None:
        if await recover(connection, max_losses=self._max_losses):
            self.check_all()


async def recover(connection: AsyncConnection[Any], *, max_losses: int) -> bool:
    """Take back what dead workers had claimed, the ones known dead on this host at once."""
    watched = await workers.watch(connection, host_name())
    gone = [worker for worker in watched if is_gone(worker.process_identity)]
    if gone:
        # Their commands are orphans; the jobs are about to run again.
        orphans.end_left_over({worker.process_identity for worker in gone})
        dead = [worker.worker_id for worker in gone]
        await workers.expire_workers(connection, dead, are_dead=True)
    has_expired = any(worker.is_expired for worker in watched)
    if not await recovery.adopt_orphans(connection) and not gone and not has_expired:
        return False
    run = partial(recovery.recover, max_losses=max_losses, jitter=_JITTER, limit=_BATCH)
    while True:
        lost = await run_batch(connection, Batch("recover", run, recovery.find_lost))
        await _log_lost(connection, lost)
        if len(lost) < _BATCH and not await recovery.adopt_orphans(connection):
            break
    await workers.note_recovered(connection)
    return True


async def _log_lost(connection: AsyncConnection[Any], lost: Sequence[recovery.LostJob]) -> None:
    if not lost:
        return
    recovered = [job.job_id for job in lost if not (job.is_parked or job.is_ended)]
    workers_lost = telemetry.first(sorted({job.worker_id for job in lost}))
    facts = {"count": len(recovered), "job_ids": telemetry.first(recovered)}
    if recovered:
        telemetry.event("job_recovered", **facts, workers=workers_lost)
    for job in lost:
        if job.is_parked or job.is_ended:
            facts = {"worker": job.worker_id, "state": JobState.DEAD_LETTER}
            event = "job_parked" if job.is_parked else "job_lost"
            await log_about(connection, event, job.job_id, **facts)
