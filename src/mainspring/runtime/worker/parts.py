"""The parts of a worker, and who learns what from whom.

    claimer ─▶ buffer ─▶ runners ─▶ reporter ─▶ database
       ▲         ▲          └─▶ unknown definitions ─▶ buffer
       │         └ order of starts: fair share
       └ maintenance: something is ready; grants: a place of a limit may be free

A part is given the parts that it uses, and these are made before it: `Parts` reads from top to
bottom. What a part has to say to one that is made after it goes through `Listeners`, a table of
events.
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.connect import for_own_statements, with_options
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.definitions import Handler
from mainspring.domain.health import Pulse
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import JobId, WorkerId
from mainspring.runtime.executors.processes import ProcessExecutor, default_size
from mainspring.runtime.maintenance import housekeeping
from mainspring.runtime.maintenance.cleanup import Cleanup
from mainspring.runtime.maintenance.duties import Maintenance
from mainspring.runtime.maintenance.limit_grants import Grants
from mainspring.runtime.maintenance.stragglers import Stragglers
from mainspring.runtime.worker.buffer import Buffer
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.claimer import Claimer
from mainspring.runtime.worker.environment import Enqueuer, WorkerEnvironment
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.job_log import JobLog
from mainspring.runtime.worker.lease import Lease
from mainspring.runtime.worker.progress import Progress
from mainspring.runtime.worker.runners import Runners
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.stored_handlers import StoredHandlers, executors
from mainspring.runtime.worker.suspects import most_processes
from mainspring.runtime.worker.unknown_definitions import UnknownDefinitions
from mainspring.runtime.worker.watchdog import Watchdog
from mainspring.services.claiming import ClaimOrder
from mainspring.services.secrets import key_ring
from mainspring.settings import Settings

# Whoever holds the row of one job must not hold up the reports of the others, nor what is done for
# them.
_LOCK_OPTIONS = "-c lock_timeout=1s"

OnReconnect = Callable[[AsyncConnection[Any]], Awaitable[None]]


class Listeners(WorkerEvents):
    """The table of events: who learns of what."""

    claimer: Claimer
    maintenance: Maintenance

    def capacity_freed(self) -> None:
        self.claimer.capacity_freed()

    def reports_sent(self, count: int) -> None:
        self.claimer.finished(count)

    def definitions_loaded(self, jobs: Sequence[ClaimedJob]) -> None:
        self.claimer.add(jobs)

    def jobs_ready(self, lane: Lane, job_ids: Collection[int]) -> None:
        self.claimer.jobs_ready(lane, job_ids)

    def notifications_missed(self) -> None:
        self.maintenance.due.wake()
        self.maintenance.grants.scan_soon()

    def places_freed(self, keys: Collection[LimitKey]) -> None:
        self.maintenance.grants.freed(keys)

    def limits_due(self) -> None:
        self.claimer.limits_due()

    def parents_ended(self, job_ids: Collection[JobId]) -> None:
        self.maintenance.dependencies.parents_ended(job_ids)


@dataclass(frozen=True, slots=True)
class Connections:
    """Those that a worker keeps for itself; handlers have pools."""

    claims: ReconnectingConnection
    finishes: ReconnectingConnection
    maintenance: ReconnectingConnection
    stragglers: ReconnectingConnection
    cleanup: ReconnectingConnection

    def needed_and_others(self) -> tuple[Sequence[ReconnectingConnection], ...]:
        """Those without which a worker can do nothing for its jobs, and the others."""
        others = (self.maintenance, self.stragglers, self.cleanup)
        return (self.claims, self.finishes), others

    async def come_back(self, seconds: float) -> None:
        """Wait until the database answers on all of them; what it does not answer in so many
        seconds is asked again on a new connection."""
        for connection in (self.claims, self.finishes, self.maintenance):
            answered = asyncio.create_task(connection.run(_ping))
            try:
                await asyncio.wait((answered,), timeout=seconds)
                if not answered.done():
                    connection.abort()
                await answered
            finally:
                answered.cancel()

    async def close(self) -> None:
        needed, others = self.needed_and_others()
        for connection in (*needed, *others):
            await connection.close()


async def _ping(connection: AsyncConnection[Any]) -> None:
    await connection.execute("", prepare=False)


class Parts:
    """What a worker consists of. `on_claims_lost` is called on a new connection for claims, since
    the answer to a claim may be lost."""

    def __init__(
        self,
        url: str,
        handlers: Mapping[str, Handler],
        *,
        queues: tuple[str, ...],
        settings: Settings,
        enqueuer: Enqueuer,
        on_claims_lost: OnReconnect,
    ) -> None:
        self._settings = settings
        self._events, order = Listeners(), ClaimOrder()
        self.lease = Lease(settings.lease_seconds)
        self.connections = _connect(url, settings, lease=self.lease, on_claims_lost=on_claims_lost)
        self.progress = Progress(*self.connections.needed_and_others())
        self.environment = WorkerEnvironment.open(
            url, enqueuer, size=settings.pool_size, use_pooler=settings.use_pooler
        )
        known = {**handlers, **housekeeping.handlers(self.environment.async_source, settings)}
        self.speculation = SpeculativeStarts(self.lease, known, use_pooler=settings.use_pooler)
        self.buffer = Buffer(order.shares)
        self._log = JobLog(settings.log_jobs)
        self.reporter = self._log.reporter(
            self.connections.finishes,
            buffer=self.buffer,
            speculation=self.speculation,
            events=self._events,
        )
        self.stored = StoredHandlers(executors(self.environment, self.reporter, settings, url=url))
        self.unknown = UnknownDefinitions(
            self.connections.maintenance,
            self.stored,
            reporter=self.reporter,
            fails_unknown=settings.unknown_handler == "fail",
            events=self._events,
        )
        self.processes = ProcessExecutor(default_size(), url, settings)
        self.suspect_processes = ProcessExecutor(
            most_processes(settings.concurrency), url, settings, keeps_idle=False
        )
        self.runners = self._make_runners(known)
        self.grants = Grants(
            self.connections.maintenance,
            order,
            queues=queues,
            is_full=lambda: self.runners.capacity() <= 0,
            events=self._events,
        )
        self.claimer = self._make_claimer(order, queues)
        self.maintenance = self._make_maintenance(known)
        self.stragglers = Stragglers(self.connections.stragglers, self.claimer)
        self.cleanup = Cleanup(self.connections.cleanup, use_pooler=settings.use_pooler)
        self.watchdog = Watchdog(
            self.runners,
            self.connections.maintenance,
            grace_seconds=settings.cancel_grace_seconds,
        )
        self._events.claimer, self._events.maintenance = self.claimer, self.maintenance

    def start_over(self, worker_id: WorkerId) -> None:
        """Go on under a new lease."""
        self.reporter.worker_id = self.watchdog.worker_id = worker_id
        self.claimer.start_over(worker_id)

    def pulses(self) -> tuple[Pulse, ...]:
        """Of the loops without which no job is run or reported; for any thread."""
        awaits_database = self.progress.awaits_database
        essential = (self.claimer.rounds, self.reporter.rounds)
        return tuple(each.pulse(awaits_database=awaits_database) for each in essential)

    def loops(self) -> Iterator[Coroutine[Any, Any, None]]:
        """All that has to run."""
        yield self.reporter.run()
        yield self.claimer.run()
        yield self.unknown.run()
        for loop in (
            *self.watchdog.loops,
            *self.maintenance.loops,
            *self.cleanup.loops,
            self.stragglers.loop,
        ):
            yield loop.run()

    def _make_maintenance(self, known: Mapping[str, Handler]) -> Maintenance:
        return Maintenance(
            self.connections.maintenance,
            self.claimer,
            self.grants,
            definitions=tuple(known),
            kinds=self.stored.kinds,
            max_losses=self._settings.max_losses,
            use_pooler=self._settings.use_pooler,
        )

    def _make_runners(self, known: Mapping[str, Handler]) -> Runners:
        return Runners(
            known,
            self.stored,
            unknown=self.unknown,
            buffer=self.buffer,
            reporter=self.reporter,
            environment=self.environment,
            concurrency=self._settings.concurrency,
            max_losses=self._settings.max_losses,
            processes=self.processes,
            suspect_processes=self.suspect_processes,
            keys=key_ring(self._settings),
            speculation=self.speculation,
            events=self._events,
            log=self._log,
        )

    def _make_claimer(self, order: ClaimOrder, queues: tuple[str, ...]) -> Claimer:
        return Claimer(
            self.connections.claims,
            order,
            buffer=self.buffer,
            runners=self.runners,
            reporter=self.reporter,
            unknown=self.unknown,
            grants=self.grants,
            speculation=self.speculation,
            lease=self.lease,
            events=self._events,
            queues=queues,
            poll_seconds=self._settings.poll_seconds,
            prefetch=self._settings.prefetch,
        )


def _connect(
    url: str, settings: Settings, *, lease: Lease, on_claims_lost: OnReconnect
) -> Connections:
    connect = partial(
        ReconnectingConnection,
        use_pooler=settings.use_pooler,
        pins_plans=True,
        patience_seconds=lease.patience,
    )
    url = for_own_statements(url)
    return Connections(
        claims=connect(url, name="mainspring claim", on_reconnect=on_claims_lost),
        finishes=connect(with_options(url, _LOCK_OPTIONS), name="mainspring finish"),
        maintenance=connect(with_options(url, _LOCK_OPTIONS), name="mainspring maintenance"),
        stragglers=connect(url, name="mainspring stragglers"),
        cleanup=connect(url, name="mainspring cleanup"),
    )
