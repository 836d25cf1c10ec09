"""A scheduler: sleeps to the next slot, plans what is due, and writes it in one statement.

    listen ─wake─▶ fire loop ─▶ due groups ─▶ slots.plan ─▶ fire (sets)
                       │                                        └▶ apply_plans (one by one)
                       ├─▶ prefetch: the due groups of the next instant, read before it
                       └─▶ checks, a few at a time: condition ─▶ apply_plans
    maintenance: figures, runs that go on for too long, turns (duties.py), old slots
    dispatcher: events become jobs, see dispatcher.py

Any number may run. Each slot is claimed by its row, and every write is guarded by the revision that
was read, so which of them comes first does not matter. The advisory lock only spares the others
the reading: one that does not hold it looks a second later, and fires what it then finds due.
So a holder that died, or sleeps, costs that second and no more.
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.db.connect import for_own_statements, with_options
from mainspring.db.listen import listen
from mainspring.db.outages import OUTAGES
from mainspring.db.pool import AsyncPool
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.db.role_logins import RoleLogins
from mainspring.domain.health import Vitals
from mainspring.domain.notifications import NotificationKind, parse_notification
from mainspring.domain.processes import Activity, ProcessKind
from mainspring.domain.retention import RetentionKind
from mainspring.domain.sqlstates import is_of_a_row
from mainspring.runtime.dispatcher.dispatcher import Dispatcher
from mainspring.runtime.heartbeat import Heartbeat, process_facts
from mainspring.runtime.loop import Loop
from mainspring.runtime.maintenance.duties import recover
from mainspring.runtime.maintenance.pruning import CleanupTaken
from mainspring.runtime.maintenance.records import RecordPruner
from mainspring.runtime.scheduler import due_batches, prefetch
from mainspring.runtime.scheduler.due_batches import Batch, Key, Written, ensure_written
from mainspring.runtime.scheduler.duties import Duties
from mainspring.runtime.scheduler.evaluator import Checker
from mainspring.runtime.scheduler.launchers import Launcher
from mainspring.runtime.scheduler.prefetch import Prefetch
from mainspring.runtime.worker.lease import is_gone, process_identity
from mainspring.settings import Settings
from mainspring.store import due_schedules as store
from mainspring.store import slots as slot_store
from mainspring.store.due_schedules import DueSchedule

_STANDBY = timedelta(seconds=1)
_LONGEST_REST = 15.0
_LONGEST_STANDBY = 5.0
_MAINTENANCE_EVERY = 1.0
_PRUNE_EVERY = 3600.0
_LOCKED_REST = 0.25
_OPTIONS = " ".join(
    (
        "-c mainspring.actor=scheduler",
        # One that is paused in the middle of a transaction must not keep its schedules locked.
        "-c idle_in_transaction_session_timeout=1s",
    )
)
_OWN_OPTIONS = " ".join(
    (
        # Someone who edits a schedule in a long transaction must not hold up all the others.
        "-c lock_timeout=200ms",
        # A bitmap visits the dead jobs of a schedule each time anew; an index scan marks them.
        "-c enable_bitmapscan=off",
    )
)


class Scheduler:
    """Fires schedules until it is stopped."""

    def __init__(
        self,
        url: str,
        launchers: Mapping[str, type[Launcher]],
        *,
        settings: Settings,
        version: str,
        job_queue: Any = None,
    ) -> None:
        self.started = asyncio.Event()
        self._settings = settings
        self._url = with_options(for_own_statements(url), _OPTIONS)
        self._identity = process_identity()
        self._launchers = launchers
        self._fires = self._dedicated("fire")
        self._beside = self._dedicated("fire beside")
        self._maintenance_connection = self._dedicated("schedule maintenance")
        # By age slots are found with a bitmap.
        self._pruning_connection = self._dedicated("slot pruning", options="")
        self._pruner = RecordPruner(
            self._pruning_connection.try_once,
            RetentionKind.SLOTS,
            fallback=timedelta(days=settings.slot_retention_days),
        )
        self._connections = (
            self._fires,
            self._beside,
            self._maintenance_connection,
            self._pruning_connection,
        )
        self._pool = AsyncPool(
            self._url, size=settings.condition_concurrency + 2, use_pooler=settings.use_pooler
        )
        self._checker = Checker(
            self._pool,
            launchers,
            job_queue,
            settings=settings,
            logins=RoleLogins(url, settings),
        )
        self._checks: set[asyncio.Task[None]] = set()
        self._unfired: set[Key] = set()
        self._is_stuck = False
        self._prefetch = Prefetch()
        self._leading: AsyncConnection[Any] | None = None
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._duties = Duties(self._maintenance_connection, (self._take_over,))
        self.loop = Loop("fire", self._pass)
        self.maintenance = Loop("schedule maintenance", self._maintain)
        self.pruning = Loop("slots", self._prune)
        self.dispatcher = Dispatcher(self._url, settings=settings)
        self._heartbeat = Heartbeat(
            process_facts(ProcessKind.SCHEDULER, version),
            # One that is hardly ever used, and by statements that end soon.
            self._pruning_connection.try_once,
            self._activity,
            lease_seconds=settings.lease_seconds,
        )

    @property
    def leads(self) -> bool:
        """Whether it reads first; through a pooler nobody can know, so everyone does."""
        return self._leading is not None or self._settings.use_pooler

    def vitals(self) -> Vitals:
        """For any thread."""
        if not self.started.is_set():
            return Vitals(hindrances=("starting",), role=ProcessKind.SCHEDULER)
        fires = any(each.waiting_since is not None for each in (self._fires, self._beside))
        pulses = (self.loop.rounds.pulse(awaits_database=fires), self.dispatcher.pulse())
        hindrances = ("stopping",) if self._stopping.is_set() else ()
        return Vitals(pulses, hindrances, ProcessKind.SCHEDULER)

    def _activity(self) -> Activity:
        facts = {"leads": self.leads, "is_stopping": self._stopping.is_set()}
        return Activity(facts, time.monotonic() - self.loop.rounds.at)

    def stop(self) -> None:
        self._stopping.set()

    def hurry(self) -> None:
        """It waits for nothing as it is."""

    async def run(self) -> None:
        """Fire until `stop`; what is being checked then is left to another scheduler."""
        try:
            await self._fires.run(self._recover)
            await self._fires.run(self._name_unknown_launchers)
            for loop in (self.loop, self.maintenance, self.pruning, self._heartbeat):
                self._spawn(loop.run())
            for duty in self.dispatcher.duties():
                self._spawn(duty)
            self._spawn(self._warm_up())
            if not self._settings.use_pooler:
                self._spawn(
                    listen(self._url, on_message=self._on_notification, on_connect=self._check_all)
                )
            telemetry.event("scheduler_started", leads=self.leads)
            self.started.set()
            await self._stopping.wait()
        finally:
            await self._close()
        if self._failure is not None:
            raise self._failure

    def _dedicated(self, name: str, *, options: str = _OWN_OPTIONS) -> ReconnectingConnection:
        return ReconnectingConnection(
            with_options(self._url, options),
            name=f"mainspring {name}",
            use_pooler=self._settings.use_pooler,
            pins_plans=True,
        )

    def _spawn(self, duty: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(duty, name=getattr(duty, "__qualname__", "duty"))
        task.add_done_callback(self._duty_ended)
        self._tasks.append(task)

    def _duty_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.event("loop_failed", loop=task.get_name(), error=error)
            self._failure = error
            self.stop()

    def _on_notification(self, payload: str) -> None:
        match parse_notification(payload):
            case (NotificationKind.SCHEDULE_CHANGED, _):
                self.loop.wake()
            case (NotificationKind.EVENT_EMITTED, _):
                self.dispatcher.loop.wake()

    def _check_all(self) -> None:
        """Notifications may have been missed."""
        self.loop.wake()
        self.dispatcher.loop.wake()

    async def _warm_up(self) -> None:
        """Connect and plan before there is something to fire."""
        for connection in (self._fires, self._beside):
            await connection.run(partial(store.fire, firings=[]))

    async def _recover(self, connection: AsyncConnection[Any]) -> None:
        """Close at once what dead processes left behind on this host. If it fails, workers go on
        with it."""
        try:
            await self._take_over(connection)
            await recover(connection, max_losses=self._settings.max_losses)
        except psycopg.Error as error:
            if not is_of_a_row(error.sqlstate):
                raise
            telemetry.event("loop_failed", loop="recovery", error=error)

    async def _name_unknown_launchers(self, connection: AsyncConnection[Any]) -> None:
        if found := await store.unknown_launchers(connection, self._launchers):
            schedules = telemetry.first(name for name, _ in found)
            launchers = telemetry.first(sorted({launcher for _, launcher in found}))
            facts = {"count": len(found), "schedules": schedules, "launchers": launchers}
            telemetry.event("launchers_missing", **facts)

    async def _take_over(self, connection: AsyncConnection[Any]) -> None:
        """The checks of dead schedulers."""
        dead = [name for name in await store.checkers(connection) if is_gone(name)]
        if dead and await store.drop_checks(connection, dead):
            self.loop.wake()

    async def _close(self) -> None:
        checks = list(self._checks)
        for task in (*self._tasks, *checks):
            task.cancel()
        await asyncio.gather(*self._tasks, *checks, return_exceptions=True)
        self._tasks.clear()  # One canceled while it connected keeps its socket as long as it lives.
        if checks:
            await self._give_back_checks()
        for connection in self._connections:
            await connection.close()
        await self.dispatcher.close()
        await self._pool.close()
        telemetry.event("scheduler_stopped")

    async def _give_back_checks(self) -> None:
        try:
            async with asyncio.timeout(3):
                await self._fires.run(lambda c: store.drop_checks(c, [self._identity]))
        except TimeoutError as error:
            OUTAGES.unreachable(self._url, "mainspring fire", error)

    # Firing

    async def _pass(self) -> float:
        return await self._fires.try_once(self._fire_all)

    async def _fire_all(self, connection: AsyncConnection[Any]) -> float:
        await self._try_to_lead(connection)
        late = timedelta(0) if self.leads else _STANDBY
        while await self._fire_due(connection, late):
            pass
        await self._start_checks(connection, late)
        return await self._rest(connection, late)

    async def _try_to_lead(self, connection: AsyncConnection[Any]) -> None:
        if self._settings.use_pooler or self._leading is connection:
            return
        self._leading = connection if await store.lead(connection) else None
        if self._leading is not None:
            telemetry.event("scheduler_leads")
            self.maintenance.wake()

    async def _rest(self, connection: AsyncConnection[Any], late: timedelta) -> float:
        longest = _LONGEST_REST if self.leads else _LONGEST_STANDBY
        if self._settings.use_pooler:
            longest = self._settings.poll_seconds
        found = await store.next_fire(connection)
        if found is None:
            return longest
        due_in, instant = found
        due_at = time.monotonic() + due_in
        if self.leads and due_in > 0:
            if due_in > prefetch.SECONDS:
                return min(longest, due_in - prefetch.SECONDS / 2)
            await self._prefetch.read(connection, instant, due_at=due_at)
        has_capacity = len(self._checks) < self._settings.condition_concurrency
        # What is due and stays so: another fires or edits it, or there is no capacity to check it.
        shortest = _LOCKED_REST if self._is_stuck else 0.0 if self.leads and has_capacity else 0.05
        due_in = due_at - time.monotonic()
        return min(longest, max(due_in + late.total_seconds(), shortest))

    async def _fire_due(self, connection: AsyncConnection[Any], late: timedelta) -> bool:
        """Whether there may be more that can be fired now."""
        batches = await self._prefetch.take()
        if batches:
            writing = self._write_both(connection, batches)
        else:
            batches = [await due_batches.read(connection, late=late, alone=self._unfired)]
            writing = self._write_and_read_on(connection, batches[0], late)
        # All are waited for: the next pass must find no transaction open.
        answers = await asyncio.gather(*writing, return_exceptions=True)
        return self._note(batches[0], [ensure_written(answer) for answer in answers])

    def _write_both(
        self, connection: AsyncConnection[Any], batches: Sequence[Batch]
    ) -> list[Coroutine[Any, Any, Written]]:
        first, *second = batches
        beside = [
            self._beside.try_once(partial(due_batches.write, batch=batch)) for batch in second
        ]
        return [due_batches.write(connection, first), *beside]

    def _write_and_read_on(
        self, connection: AsyncConnection[Any], batch: Batch, late: timedelta
    ) -> list[Coroutine[Any, Any, Written]]:
        if not batch.is_full:
            return [due_batches.write(connection, batch)]
        # A set keeps one backend busy, so the rest is read and written beside it.
        return [
            self._beside.try_once(partial(due_batches.write, batch=batch)),
            self._fire_more(connection, late, skip=batch.size),
        ]

    async def _fire_more(
        self, connection: AsyncConnection[Any], late: timedelta, *, skip: int
    ) -> Written:
        batch = await due_batches.read(connection, late=late, skip=skip, alone=self._unfired)
        return await due_batches.write(connection, batch)

    def _note(self, batch: Batch, written: Sequence[Written]) -> bool:
        """Whether there may be more, after the first batch and perhaps another."""
        moved = any(each.moved for each in written)
        self._is_stuck = batch.size > 0 and not moved and not any(each.fired for each in written)
        if batch.plain:
            self._unfired = set().union(*(each.unfired for each in written))
            if self._unfired:
                return True
        return not self._is_stuck and (batch.is_full or batch.is_cut or moved)

    # Checks

    async def _start_checks(self, connection: AsyncConnection[Any], late: timedelta) -> None:
        capacity = self._settings.condition_concurrency - len(self._checks)
        if capacity <= 0:
            return
        asked = await slot_store.pending(connection, identity=self._identity, limit=capacity)
        for due in asked:
            self._start_check(self._checker.check_asked(due), due)
        capacity -= len(asked)
        if capacity > 0:
            found = await store.due_checks(
                connection, identity=self._identity, late=late, limit=capacity
            )
            for due in found:
                self._start_check(self._checker.check(due), due)

    def _start_check(self, check: Coroutine[Any, Any, None], due: DueSchedule) -> None:
        task = asyncio.create_task(check, name=f"check {due.spec.name}")
        self._checks.add(task)
        task.add_done_callback(partial(self._checked, due))

    def _checked(self, due: DueSchedule, task: "asyncio.Task[None]") -> None:
        self._checks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # It is ours until its lease ends; then another look is taken.
            telemetry.event("check_failed", **due.log_facts(), error=error)
        self.loop.wake()

    # Chores

    async def _maintain(self) -> float:
        await self._duties.run()
        # The others do them too, if seldom: who leads may hang.
        return _MAINTENANCE_EVERY if self.leads else _LONGEST_REST

    async def _prune(self) -> float:
        if self.leads:
            with suppress(CleanupTaken):
                await self._pruner.prune()
        return _PRUNE_EVERY
