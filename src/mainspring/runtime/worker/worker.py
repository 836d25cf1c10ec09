"""A worker process: claims, runs, reports, and keeps its lease.

    LISTEN ─wake─▶ claimer ─▶ buffer ─▶ runners ─▶ reporter ─▶ database
                      ▲                    │
                      └───── capacity ─────┘
    lease keeper (thread) ─stalled─▶ hand back the buffer ─lost─▶ start over under a new id
    watchdog: timeouts, cancels, force        maintenance: due, recovery, history

What these parts are given and what they announce to each other is in `parts.py`; here is how they
start, stop and start over.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db import migrate
from mainspring.db.listen import listen
from mainspring.db.outages import OUTAGES
from mainspring.domain.definitions import Handler, schemas_of
from mainspring.domain.health import Vitals
from mainspring.domain.jobs.outcomes import StopReason
from mainspring.domain.notifications import Notification, NotificationKind, parse_notification
from mainspring.domain.processes import ProcessKind
from mainspring.domain.types import WaitsFor, WorkerId
from mainspring.runtime.loop import done_before
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.environment import Enqueuer
from mainspring.runtime.worker.hand_backs import hand_back_unknown, leave
from mainspring.runtime.worker.lease import LeaseKeeper, host_name, process_identity
from mainspring.runtime.worker.parts import Parts
from mainspring.runtime.worker.refused_reports import is_retried, said_by, send_in_halves
from mainspring.settings import Settings
from mainspring.store import attempts, recovery, workers
from mainspring.store.attempts import Report
from mainspring.store.workers import WorkerFacts

T = TypeVar("T")

_LAST_WORDS_SECONDS = 3


class Worker:
    """Runs handlers for jobs of some queues until it is stopped."""

    def __init__(
        self,
        url: str,
        handlers: Mapping[str, Handler],
        *,
        queues: tuple[str, ...],
        settings: Settings,
        enqueuer: Enqueuer,
        version: str,
        name: str | None = None,
    ) -> None:
        self.worker_id = WorkerId(0)
        self.started = asyncio.Event()
        self._url, self._settings = url, settings
        self._facts = WorkerFacts(
            name=name or f"{host_name()}:{os.getpid()}",
            host=host_name(),
            pid=os.getpid(),
            process_identity=process_identity(),
            queues=queues,
            concurrency=settings.concurrency,
            version=version,
            schemas=schemas_of(handlers),
            schema_number=migrate.newest(),
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._keeper: LeaseKeeper | None = None
        self._failure: BaseException | None = None
        self.parts = Parts(
            url,
            handlers,
            queues=queues,
            settings=settings,
            enqueuer=enqueuer,
            on_claims_lost=self._return_lost_claims,
        )

    # Life

    async def run(self) -> None:
        """Work until `stop`; returns when everything is reported or handed back."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._start()
            await self._stopping.wait()
            await self._drain()
        finally:
            await self._close()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Take no more jobs, drain, hand back the rest; safe to call again."""
        self._stopping.set()

    def hurry(self) -> None:
        """Do not wait for running jobs any longer."""
        self._hurry.set()

    def vitals(self) -> Vitals:
        """For any thread."""
        if not self.started.is_set():
            return Vitals(hindrances=("starting",), role=ProcessKind.WORKER)
        hindrances = () if self.parts.lease.has_left() else ("the lease is lost",)
        if self._stopping.is_set():
            hindrances = ("stopping",)
        kept = self._keeper and self._keeper.pulse()
        pulses = (*self.parts.pulses(), *((kept,) if kept else ()))
        return Vitals(pulses, hindrances, ProcessKind.WORKER)

    @property
    def running(self) -> int:
        """How many jobs it runs."""
        return len(self.parts.runners.running)

    def _running_facts(self) -> dict[str, Any]:
        running = self.parts.runners.running
        facts = {"count": len(running), "job_ids": telemetry.first(running)}
        return {"worker": self.worker_id, **facts}

    @property
    def has_stuck_threads(self) -> bool:
        """Whether a handler's thread outlived the drain; only leaving the process ends it."""
        return self.parts.runners.threads.abandoned > 0

    async def _start(self) -> None:
        self._spawn(self._beat())
        await self._register()
        await self._recover()
        for loop in self.parts.loops():
            self._spawn(loop)
        self._spawn(self._tend_buffer())
        if not self._settings.use_pooler:
            self._spawn(
                listen(self._url, on_message=self._on_notification, on_connect=self._check_all)
            )
        facts = {"name": self._facts.name, "queues": ",".join(self._facts.queues)}
        telemetry.event("worker_started", worker=self.worker_id, **facts)
        self.started.set()

    async def _register(self) -> None:
        asked_at, lease = 0.0, self.parts.lease

        async def register(connection: AsyncConnection[Any]) -> WorkerId:
            nonlocal asked_at
            asked_at = time.monotonic()
            return await workers.register(connection, self._facts, lease.duration)

        self.worker_id = await self._do(register)
        lease.valid_until = asked_at + lease.seconds
        self.parts.start_over(self.worker_id)
        self._keeper = LeaseKeeper(
            self._url,
            self.worker_id,
            lease=lease,
            progress=self.parts.progress,
            owner=self,
            use_pooler=self._settings.use_pooler,
        )
        self._keeper.start()
        self.parts.claimer.capacity_freed()

    async def _beat(self) -> None:
        """Show that the event loop moves, and see to it that the lease's thread does."""
        while True:
            self.parts.progress.beat()
            if self._keeper is not None:
                self._keeper.look_after()
            await asyncio.sleep(self.parts.lease.tick)

    def _spawn(self, duty: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(duty, name=getattr(duty, "__qualname__", "duty"))
        task.add_done_callback(self._duty_ended)
        self._tasks.append(task)

    def _duty_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.event("loop_failed", loop=task.get_name(), error=error)
            self._failure = error
            self.stop()

    async def _drain(self) -> None:
        parts = self.parts
        facts = {**self._running_facts(), "drain_seconds": self._settings.drain_seconds}
        telemetry.event("worker_stopping", **facts)
        parts.claimer.is_stopping = True
        buffered = parts.claimer.take_all()
        announced = asyncio.create_task(self._announce_stop(buffered))
        if not await self._drained_in_time():
            await parts.runners.interrupt_all("the worker stopped before the job was done")
        try:
            # The database may be away; what does not reach it ends with the lease.
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await announced
                # A claim that was under way when we stopped.
                await self._hand_back(parts.claimer.take_all())
                await parts.reporter.drained()
                await self._hand_back(parts.unknown.take_all())
        except (TimeoutError, psycopg.Error) as error:
            OUTAGES.unreachable(self._url, "mainspring drain", error)

    async def _announce_stop(self, buffered: list[Report]) -> None:
        await self._do(lambda connection: workers.stop(connection, self.worker_id))
        await self._hand_back(buffered)

    async def _drained_in_time(self) -> bool:
        seconds = self._settings.drain_seconds
        return await done_before(self.parts.runners.drained(), self._hurry.wait(), seconds=seconds)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.close()
        self.parts.runners.threads.close()
        self.parts.processes.close()
        self.parts.suspect_processes.close()
        if self.worker_id:
            await self._leave()
        await self.parts.connections.close()
        await self.parts.environment.close()
        telemetry.event("worker_stopped", worker=self.worker_id)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._do(partial(leave, worker_id=self.worker_id))
        except (TimeoutError, psycopg.Error) as error:
            OUTAGES.unreachable(self._url, "mainspring leave", error)

    # Jobs

    async def _tend_buffer(self) -> None:
        """Hand back what waits too long behind slow jobs, and what no handler here knows."""
        while True:
            await asyncio.sleep(0.25)
            await self._hand_back(self.parts.claimer.take_stale())
            await self.parts.reporter.repeat_late()
            if missing := self.parts.unknown.take_missing():
                telemetry.event("handler_unknown", **_unknown_facts(self.worker_id, missing))
                await self._hand_back([job.report for job in missing], WaitsFor.HANDLER)

    async def _hand_back(self, reports: list[Report], waits_for: WaitsFor | None = None) -> None:
        if not reports:
            return

        async def hand_back(some: list[Report]) -> None:
            queues = await self.parts.connections.maintenance.run(
                lambda c: attempts.hand_back(c, some, waits_for),
                is_passing=partial(is_retried, is_alone=False),
            )
            if waits_for is None and queues:
                await self._do(lambda c: workers.wake(c, queues))

        await self.parts.speculation.resolved()
        await send_in_halves(reports, hand_back, self._put_off)

    async def _put_off(self, reports: list[Report], error: psycopg.Error) -> None:
        await self.parts.reporter.put_off(
            reports[0], f"it could not be handed back: {said_by(error)}"
        )

    async def _return_lost_claims(self, connection: AsyncConnection[Any]) -> None:
        """Hand back what a claim took whose answer was lost."""
        parts = self.parts
        claimed = (*parts.buffer, *parts.unknown.loading, *parts.runners.running.values())
        known = {*(job.id for job in claimed), *(job.id for job in parts.unknown.missing)}
        known |= parts.reporter.job_ids()
        await hand_back_unknown(connection, self.worker_id, known, speculation=parts.speculation)
        self._disown_speculative()

    def _disown_speculative(self) -> None:
        """End what began although its claim came to nothing; the job is still queued."""
        lost = self.parts.speculation.take_lost()
        self.parts.reporter.drop({job.id for job in lost})
        self.parts.buffer.remove(lost)
        runners = self.parts.runners
        for job in lost:
            if runners.running.get(job.id) is job:
                runners.disown(job)

    # Notifications

    def _check_all(self) -> None:
        """Notifications may have been missed."""
        self.parts.claimer.wake()
        self.parts.maintenance.check_all()
        self.parts.watchdog.look_for_cancels()

    def _on_notification(self, payload: str) -> None:
        match parse_notification(payload):
            case (NotificationKind.QUEUE_READY, queue) if queue in self._facts.queues:
                self.parts.claimer.wake()
            case (NotificationKind.LANE_READY, lane):
                self.parts.claimer.lane_ready(lane)
            case (NotificationKind.JOBS_READY, jobs):
                self.parts.claimer.jobs_announced(jobs)
            case (NotificationKind.CANCEL_REQUESTED, worker) if worker == str(self.worker_id):
                self.parts.watchdog.look_for_cancels()
            case Notification() as notification:
                self.parts.maintenance.on_notification(notification)

    # Leases

    def withdraw(self) -> list[ClaimedJob]:
        return self.parts.buffer.withdraw()

    def stalled_facts(self) -> Mapping[str, Any]:
        task = asyncio.current_task(self._loop)
        running = list(self.parts.runners.running.values())
        job = next((job for job in running if job.task is task), None)
        return {} if job is None else job.log_facts()

    def hand_back_refused(self, reports: list[Report]) -> None:
        self.parts.claimer.returns += reports

    def resumed(self, handed_back: list[ClaimedJob]) -> None:
        if handed_back:
            self.parts.claimer.returned(handed_back)
        self.parts.claimer.capacity_freed()

    def lease_lost(self, worker_id: WorkerId, has_hung: bool) -> None:
        if worker_id == self.worker_id and not self._stopping.is_set():
            telemetry.event("lease_lost", **self._running_facts())
            self._spawn(self._start_over(has_hung=has_hung))

    async def _start_over(self, *, has_hung: bool) -> None:
        """Everything claimed belongs to someone else now: stop it and go on under a new id."""
        lost_id = self.worker_id
        self._disown_speculative()
        self.parts.claimer.take_all()
        self.parts.unknown.take_all()
        self._stop_outlived()
        self.parts.reporter.forget()
        await self.parts.connections.come_back(self.parts.lease.ask_after)
        await self._register()
        self._stop_outlived()
        await self._recover(survivor=None if has_hung else lost_id)
        await self.parts.reporter.repeat_late()

    def _stop_outlived(self) -> None:
        runners = self.parts.runners
        for job in list(runners.running.values()):
            if job.stop is not StopReason.LEASE_LOST:
                runners.stop_job(job, StopReason.LEASE_LOST, "the lease was lost")

    async def _recover(self, *, survivor: WorkerId | None = None) -> None:
        """Before anything is claimed; if it fails, its loop goes on with it."""
        try:
            if survivor is not None:
                await self._do(partial(recovery.note_survivor, worker_id=survivor))
            await self._do(self.parts.maintenance.recover)
        except psycopg.Error as error:
            telemetry.event("loop_failed", loop="recovery", error=error)

    async def _do(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        return await self.parts.connections.maintenance.run(action)


def _unknown_facts(worker_id: WorkerId, jobs: Sequence[ClaimedJob]) -> dict[str, Any]:
    return {
        "worker": worker_id,
        "count": len(jobs),
        "job_ids": telemetry.first(job.id for job in jobs),
        "definitions": telemetry.first(sorted({job.definition for job in jobs})),
    }
