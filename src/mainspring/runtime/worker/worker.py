"""A worker process: claims, runs, reports, and keeps its lease.

listen ─wake─▶ claimer ─▶ buffer ─▶ runners ─▶ reporter ─▶ database
                  ▲                    │
                  └────── room ────────┘
lease keeper (thread) ─lost─▶ start over under a new id
watchdog: timeouts, cancels, force        maintenance: due, recovery, history
"""

import asyncio
import os
import time
from collections.abc import Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.listen import listen
from mainspring.db.pool import AsyncPool, SyncPool
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.definitions import Handler
from mainspring.domain.jobs.outcomes import End, StopReason
from mainspring.domain.types import AttemptStatus, JobState, WaitsFor, WorkerId
from mainspring.runtime.executors.processes import ProcessExecutor, default_size
from mainspring.runtime.loop import done_before
from mainspring.runtime.maintenance import housekeeping
from mainspring.runtime.maintenance.duties import Maintenance
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.claimer import Claimer, hand_back_unknown, leave
from mainspring.runtime.worker.context import Enqueuer
from mainspring.runtime.worker.lease import LeaseKeeper, host_name, process_identity
from mainspring.runtime.worker.output import store_printed
from mainspring.runtime.worker.reporter import Reporter
from mainspring.runtime.worker.runners import Runners
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.stored_handlers import StoredHandlers, executors
from mainspring.runtime.worker.unknown_definitions import UnknownDefinitions
from mainspring.runtime.worker.watchdog import Watchdog
from mainspring.services.secrets import key_ring
from mainspring.settings import Settings
from mainspring.store import attempts, workers
from mainspring.store.attempts import Report
from mainspring.store.workers import WorkerFacts

_POOL_SIZE = 20
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
        self.enqueuer = enqueuer
        self._url, self._settings = url, settings
        self._handlers = handlers
        self._lease = timedelta(seconds=settings.lease_seconds)
        self._facts = WorkerFacts(
            name=name or f"{host_name()}:{os.getpid()}",
            host=host_name(),
            pid=os.getpid(),
            process_identity=process_identity(),
            queues=queues,
            concurrency=settings.concurrency,
            version=version,
        )
        self._unknown: list[Report] = []
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._keeper: LeaseKeeper | None = None
        self._failure: BaseException | None = None
        self._build()

    def _build(self) -> None:
        settings = self._settings
        use_pooler = settings.use_pooler
        self.async_source = AsyncPool(self._url, size=_POOL_SIZE, use_pooler=use_pooler)
        self.sync_source = SyncPool(self._url, size=_POOL_SIZE, use_pooler=use_pooler)
        known = {**self._handlers, **housekeeping.handlers(self, settings)}
        self._early = SpeculativeStarts(known)
        self._claims = self._dedicated("claim", on_reconnect=self._return_unheard)
        self._finishes, self._chores = self._dedicated("finish"), self._dedicated("chores")
        self._claimer = Claimer(
            self._claims,
            queues=self._facts.queues,
            poll_seconds=settings.poll_seconds,
            prefetch=settings.prefetch,
            room=self._room,
            away=lambda: self._strangers.waiting,
            early=self._early,
            on_claimed=self._claimed,
            on_wants_wake=self._rests,
        )
        self._processes = ProcessExecutor(default_size(), self._url)
        self._stored = StoredHandlers(executors(self, settings))
        self._maintenance = self._maintenance_of(known)
        self._reporter = Reporter(
            self._finishes,
            early=self._early,
            on_sent=self._sent,
            is_busy=lambda: len(self._claimer.buffer) > 0,
            on_returned=self._rests,
            on_freed=self._maintenance.grants.freed,
            on_parents=self._maintenance.settling.ended,
        )
        self._strangers = UnknownDefinitions(
            self._chores, self._stored, on_known=self._claimer.add, on_unknown=self._note_unknown
        )
        self._runners = Runners(
            known,
            self._stored,
            buffer=self._claimer.buffer.jobs,
            reporter=self._reporter,
            facilities=self,
            concurrency=settings.concurrency,
            processes=self._processes,
            keys=key_ring(settings),
            take_token=self._maintenance.grants.take_token,
            early=self._early,
            on_unknown=self._strangers.add,
            on_room=self._claimer.made_room,
        )
        self._watchdog = Watchdog(
            self._runners, self._chores, grace_seconds=settings.cancel_grace_seconds
        )

    def _maintenance_of(self, known: Iterable[str]) -> Maintenance:
        return Maintenance(
            self._chores,
            self.async_source,
            definitions=tuple(known),
            kinds=self._stored.kinds,
            max_losses=self._settings.max_losses,
            hears_all=lambda: self._claimer.wants_wake and not self._settings.use_pooler,
            has_plenty=lambda: self._claimer.has_plenty,
            on_ready=self._claimer.wake,
        )

    def _dedicated(self, name: str, **options: Any) -> ReconnectingConnection:
        return ReconnectingConnection(
            self._url,
            name=f"mainspring {name}",
            use_pooler=self._settings.use_pooler,
            pins_plans=True,
            **options,
        )

    # Life

    async def run(self) -> None:
        """Work until `stop`; returns when everything is reported or handed back."""
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

    @property
    def has_stuck_threads(self) -> bool:
        """Whether a handler's thread outlived the drain; only leaving the process ends it."""
        return self._runners.threads.abandoned > 0

    async def _start(self) -> None:
        await self._register()
        await self._chores.run(self._maintenance.recover)
        self._spawn(self._reporter.run())
        self._spawn(self._claimer.run())
        self._spawn(self._watchdog.loop.run())
        self._spawn(self._tend_buffer())
        self._spawn(self._strangers.run())
        for loop in self._maintenance.loops:
            self._spawn(loop.run())
        if not self._settings.use_pooler:
            self._spawn(listen(self._url, on_message=self._hear, on_connect=self._look_around))
        telemetry.event(
            "worker_started", worker=self.worker_id, queues=",".join(self._facts.queues)
        )
        self.started.set()

    async def _register(self) -> None:
        async def register(connection: AsyncConnection[Any]) -> WorkerId:
            return await workers.register(connection, self._facts, self._lease)

        self.worker_id = await self._chores.run(register)
        self._reporter.worker_id = self._watchdog.worker_id = self.worker_id
        self._claimer.start_over(self.worker_id)
        loop = asyncio.get_running_loop()

        def lost(worker_id: WorkerId) -> None:
            loop.call_soon_threadsafe(self._lease_lost, worker_id)

        self._keeper = LeaseKeeper(
            self._url,
            self.worker_id,
            lease=self._lease,
            on_lost=lost,
            use_pooler=self._settings.use_pooler,
        )
        self._keeper.start()

    def _spawn(self, duty: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(duty, name=getattr(duty, "__qualname__", "duty"))
        task.add_done_callback(self._duty_ended)
        self._tasks.append(task)

    def _duty_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.event("loop_failed", loop=task.get_name(), error=repr(error))
            self._failure = error
            self.stop()

    async def _drain(self) -> None:
        running = len(self._runners.running)
        telemetry.event("worker_stopping", worker=self.worker_id, running=running)
        self._claimer.is_paused = True
        ahead = self._claimer.take_all()
        announced = asyncio.create_task(self._announce_stop(ahead))
        if not await self._drained_in_time():
            await self._runners.interrupt_all("the worker stopped before the job was done")
        try:
            # The database may be away; what it does not hear, the end of the lease tells it.
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await announced
                # A claim that was under way when we paused.
                await self._hand_back(self._claimer.take_all())
                await self._reporter.drained()
                await self._hand_back([*self._unknown, *self._strangers.take_all()])
        except TimeoutError:
            telemetry.event("database_lost", connection="drain")

    async def _announce_stop(self, ahead: list[Report]) -> None:
        await self._chores.run(lambda c: workers.stop(c, self.worker_id))
        await self._hand_back(ahead)

    async def _drained_in_time(self) -> bool:
        seconds = self._settings.drain_seconds
        return await done_before(self._runners.drained(), self._hurry.wait(), seconds=seconds)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.close()
        self._runners.threads.close()
        self._processes.close()
        if self.worker_id:
            await self._leave()
        for connection in (self._claims, self._finishes, self._chores):
            await connection.close()
        await self.async_source.close()
        self.sync_source.close()
        telemetry.event("worker_stopped", worker=self.worker_id)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._chores.run(partial(leave, worker_id=self.worker_id))
        except TimeoutError:
            telemetry.event("database_lost", connection="leave")

    # Jobs

    def _room(self) -> int:
        return self._runners.room() - max(0, len(self._reporter) - 2 * self._settings.prefetch)

    def _claimed(self) -> None:
        self._runners.start()

    def _rests(self) -> None:
        """There may be jobs that nobody told of."""
        self._maintenance.hear("due")
        self._maintenance.grants.look()

    def _sent(self, count: int) -> None:
        self._claimer.pace.finished(count, time.monotonic())
        self._claimer.made_room()

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None:
        job.progress = progress

    async def store_printed(self, job: ClaimedJob) -> None:
        await store_printed(job, self.async_source)

    def end_printed(self, job: ClaimedJob) -> None:
        self._reporter.printed(job)

    def _note_unknown(self, job: ClaimedJob) -> None:
        if self._settings.unknown_handler == "fail":
            job.began_at = time.monotonic()
            note = f"no handler for {job.definition!r} in this worker (unknown_handler = fail)"
            self._reporter.end(job, End(JobState.FAILED, AttemptStatus.FAILED, note, failed=1))
        else:
            self._unknown.append(job.report)
        self._claimer.made_room()

    async def _tend_buffer(self) -> None:
        """Hand back what waits too long behind slow jobs, and what no handler here knows."""
        while True:
            await asyncio.sleep(0.25)
            await self._hand_back(self._claimer.take_stale())
            await self._reporter.repeat_late()
            if self._unknown:
                unknown, self._unknown = self._unknown, []
                telemetry.event("handler_unknown", jobs=len(unknown))
                await self._hand_back(unknown, WaitsFor.HANDLER)

    async def _hand_back(self, reports: list[Report], waits_for: WaitsFor | None = None) -> None:
        if not reports:
            return

        async def hand_back(connection: AsyncConnection[Any]) -> None:
            queues = await attempts.hand_back(connection, reports, waits_for)
            if waits_for is None and queues:
                await workers.wake(connection, queues)

        await self._early.settled()
        await self._chores.run(hand_back)

    async def _return_unheard(self, connection: AsyncConnection[Any]) -> None:
        held = (*self._claimer.buffer, *self._strangers.waiting, *self._runners.running.values())
        known = {*(job.id for job in held), *(report.job_id for report in self._unknown)}
        known |= self._reporter.job_ids()
        await hand_back_unknown(connection, self.worker_id, known, early=self._early)
        self._disown_early()

    def _disown_early(self) -> None:
        """End what began although its claim came to nothing; the job is still queued."""
        lost = self._early.take_lost()
        self._reporter.drop({job.id for job in lost})
        self._claimer.buffer.remove(lost)
        for job in lost:
            if self._runners.running.get(job.id) is job:
                self._runners.disown(job)

    # Messages

    def _look_around(self) -> None:
        """Messages may have been missed."""
        self._claimer.wake()
        self._maintenance.look_around()
        self._watchdog.look_for_cancels()

    def _hear(self, message: str) -> None:
        kind, _, subject = message.partition(":")
        if kind == "ready" and subject in self._facts.queues:
            self._claimer.wake()
        elif kind == "lane":
            self._claimer.hear(subject)
        elif kind == "cancel" and subject == str(self.worker_id):
            self._watchdog.look_for_cancels()
        else:
            self._maintenance.hear(kind, subject)

    def _lease_lost(self, worker_id: WorkerId) -> None:
        if worker_id == self.worker_id and not self._stopping.is_set():
            telemetry.event("lease_lost", worker=worker_id, running=len(self._runners.running))
            self._spawn(self._start_over())

    async def _start_over(self) -> None:
        """Everything held belongs to someone else now: stop it and go on under a new id."""
        self._disown_early()
        self._claimer.take_all()
        self._strangers.take_all()
        self._stop_outlived()
        self._reporter.forget()
        await self._register()
        self._stop_outlived()
        await self._chores.run(self._maintenance.recover)
        await self._reporter.repeat_late()

    def _stop_outlived(self) -> None:
        for job in list(self._runners.running.values()):
            if job.stop is not StopReason.LEASE_LOST:
                self._runners.stop_job(job, StopReason.LEASE_LOST, "the lease was lost")
