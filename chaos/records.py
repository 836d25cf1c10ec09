"""Reads the whole history at the end of a run."""

import itertools
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from chaos import spans
from chaos.histories import (
    Attempt,
    Availability,
    Effect,
    Event,
    History,
    Hold,
    Job,
    Slot,
    Worker,
)
from chaos.observer import Observer
from chaos.operations import Fate, Ledger
from chaos.spans import Span, Spans
from chaos.systems import Process, System

# A process counts as live when it says that it has started, and at the latest after this.
STARTUP_SECONDS = 10.0

_JOBS = """
select job_id, definition, state::text, waits_for::text, (payload ->> 'n')::bigint,
       extract(epoch from created_at)::float, extract(epoch from finished_at)::float,
       array(select parent_id from mainspring.dependencies as d where d.job_id = all_jobs.job_id),
       last_error, tenant_id, queue, payload ->> 'key',
       extract(epoch from (select decided_at from mainspring.approvals as a
                            where a.job_id = all_jobs.job_id))::float
  from mainspring.all_jobs
"""
_ATTEMPTS = """
select job_id, fence, status::text, extract(epoch from started_at)::float,
       extract(epoch from finished_at)::float
  from mainspring.attempts
"""
_CLAIMS = """
select job_id, extract(epoch from at)::float, worker_id, fence from chaos.claims order by job_id, at
"""
_SLOTS = """
select extract(epoch from scheduled_for)::float, extract(epoch from fired_at)::float,
       outcome::text, job_id
  from mainspring.slots
"""
_EVENTS = """
select event_id, extract(epoch from emitted_at)::float, extract(epoch from handled_at)::float,
       (select count(job_id) from mainspring.dispatches as d where d.event_id = events.event_id),
       (context ->> 'n')::bigint
  from mainspring.events
"""
_REGISTRATIONS = """
select pid, extract(epoch from at)::float, worker_id from chaos.workers order by at
"""
_BLOCKED = """
select attempts.worker_id, extract(epoch from attempts.started_at)::float,
       (payload ->> 'seconds')::float
  from mainspring.attempts join mainspring.all_jobs using (job_id) where definition = 'blocking'
"""


def read_history(system: System, observer: Observer, ledger: Ledger) -> History:
    with system.connect() as connection:
        reader = _Reader(connection, observer, ledger)
        return History(
            committed={
                n: ledger.kinds[n] for n, fate in ledger.fates.items() if fate is Fate.COMMITTED
            },
            rolled_back={n for n, fate in ledger.fates.items() if fate is Fate.ROLLED_BACK},
            jobs=reader.jobs(),
            attempts=reader.attempts(),
            effects=[
                Effect(*row) for row in reader.rows("select job_id, tenant from chaos.effects")
            ],
            holds=reader.holds(),
            slots=reader.slots(),
            events=reader.events(),
            tenants=ledger.tenants(),
            leaks=ledger.leaks,
            looks=ledger.looks,
            crashes={each.name: each.crashes for each in (*system.schedulers, system.server)},
            most_limited=observer.most_limited,
            most_keyed=observer.most_keyed,
            ended_at=observer.now(),
            availability=reader.availability(system),
        )


class _Reader:
    def __init__(self, connection: psycopg.Connection, observer: Observer, ledger: Ledger) -> None:
        self._connection, self._observer, self._ledger = connection, observer, ledger
        self._start = observer.start

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode()).fetchall()

    def _since(self, instant: float | None) -> float | None:
        return None if instant is None else instant - self._start

    def jobs(self) -> list[Job]:
        return [self._job(*row) for row in self.rows(_JOBS)]

    def _job(self, *row: Any) -> Job:
        job_id, definition, state, waits_for, n, created_at, finished_at, parents, error = row[:9]
        tenant, queue, key, approved_at = row[9:]
        delay = self._ledger.delays.get(n, 0.0)
        return Job(
            job_id=job_id,
            definition=definition,
            state=state,
            waits_for=waits_for,
            n=n,
            ready_at=self._ready_at(definition, n, created_at) + delay,
            finished_at=self._since(finished_at),
            parents=parents,
            error=error,
            tenant=tenant,
            queue=queue,
            key=key,
            approved_at=self._since(approved_at),
            is_delayed=delay > 0,
        )

    def _ready_at(self, definition: str, n: int | None, created_at: float) -> float:
        """When the caller had its commit; the job of an event is made by a dispatcher."""
        known = None if definition == "evented" else self._ledger.committed_at.get(n or 0)
        return max(created_at, known or created_at) - self._start

    def attempts(self) -> list[Attempt]:
        return [
            Attempt(job_id, fence, status, started_at - self._start, finished_at - self._start)
            for job_id, fence, status, started_at, finished_at in self.rows(_ATTEMPTS)
        ]

    def holds(self) -> list[Hold]:
        found = []
        for job_id, changes in itertools.groupby(self.rows(_CLAIMS), key=lambda row: row[0]):
            known = [(at - self._start, worker_id, fence) for _, at, worker_id, fence in changes]
            nexts = [*(at for at, _, _ in known[1:]), None]
            found += [
                Hold(job_id, worker_id, at, released_at, fence)
                for (at, worker_id, fence), released_at in zip(known, nexts, strict=True)
                if worker_id is not None
            ]
        return found

    def slots(self) -> list[Slot]:
        return [
            Slot(due_at - self._start, fired_at - self._start, outcome, job_id)
            for due_at, fired_at, outcome, job_id in self.rows(_SLOTS)
        ]

    def events(self) -> list[Event]:
        return [
            Event(
                event_id,
                max(emitted_at, self._ledger.committed_at.get(n, emitted_at)) - self._start,
                self._since(handled_at),
                jobs,
            )
            for event_id, emitted_at, handled_at, jobs, n in self.rows(_EVENTS)
        ]

    def availability(self, system: System) -> Availability:
        away = [
            *self._observer.away,
            *((a - self._start, b - self._start) for a, b in system.outages),
        ]
        return Availability(
            workers=[self._worker(each) for each in system.workers],
            schedulers=[self._up(each, _scheduler_starts(each)) for each in system.schedulers],
            database_away=spans.union(away),
        )

    def _worker(self, process: Process) -> Worker:
        pids = {life.pid for life in process.lives}
        registered = [row for row in self.rows(_REGISTRATIONS) if row[0] in pids]
        starts = {pid: at for pid, at, _ in reversed(registered)}
        worker_ids = frozenset(worker_id for _, _, worker_id in registered)
        blocked = [
            (at - self._start, at - self._start + seconds)
            for worker_id, at, seconds in self.rows(_BLOCKED)
            if worker_id in worker_ids
        ]
        up = spans.without(self._up(process, starts), spans.union(blocked))
        return Worker(process.name, process.queues, worker_ids, up)

    def _up(self, process: Process, starts: dict[int, float]) -> Spans:
        lives = [
            self._life(life.started_at, life.ended_at, starts.get(life.pid))
            for life in process.lives
        ]
        outages = spans.union((a - self._start, b - self._start) for a, b in process.outages)
        return spans.without(spans.union(lives), outages)

    def _life(self, started_at: float, ended_at: float | None, ready_at: float | None) -> Span:
        latest = started_at + STARTUP_SECONDS
        start = min(ready_at or latest, latest) - self._start
        return start, self._observer.now() if ended_at is None else ended_at - self._start


def _scheduler_starts(process: Process) -> dict[int, float]:
    """When each life said that it had started."""
    found = {}
    for life, path in zip(process.lives, process.logs(), strict=True):
        started_at = _first_event(path, "scheduler_started")
        if started_at is not None:
            found[life.pid] = started_at
    return found


def _first_event(path: Path, event: str) -> float | None:
    for line in path.read_text(errors="replace").splitlines():
        if f'"event": "{event}"' in line:
            return datetime.fromisoformat(json.loads(line)["at"]).timestamp()
    return None
