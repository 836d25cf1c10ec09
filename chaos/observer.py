"""Reads what happened: samples while it runs, and the whole history at the end."""

import threading
from contextlib import suppress
from typing import Any

import psycopg

from chaos.checks import Attempt, History, Job
from chaos.operations import Fate, Ledger
from chaos.systems import System

_RUNNING = """
select coalesce(max(c) filter (where definition = 'limited'), 0),
       coalesce(max(c) filter (where definition = 'keyed'), 0)
  from (select definition, case when definition = 'keyed' then limit_key end as k, count(*) as c
          from mainspring.jobs
         where state = 'running' and definition in ('limited', 'keyed')
         group by 1, 2) as counted
"""
_JOBS = """
select job_id, definition, state::text, waits_for::text, (payload ->> 'n')::bigint,
       extract(epoch from greatest(created_at, scheduled_for) - %(start)s)::float,
       extract(epoch from finished_at - %(start)s)::float,
       array(select parent_id from mainspring.dependencies as d where d.job_id = all_jobs.job_id),
       last_error
  from mainspring.all_jobs
"""
_ATTEMPTS = """
select job_id, fence, status::text, extract(epoch from started_at - %(start)s)::float,
       extract(epoch from finished_at - %(start)s)::float
  from mainspring.attempts
"""
_SLOTS = """
select extract(epoch from scheduled_for - %(start)s)::float, outcome::text, job_id
  from mainspring.slots
"""
_UNSETTLED = """
select count(*) from mainspring.jobs
"""


class Observer:
    """Samples what may never be exceeded."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.most_limited = self.most_keyed = 0
        with system.connect() as connection:
            self.start = _one(connection, "select now()")

    def run(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def now(self) -> float | None:
        """Seconds since the start by the database's clock; None while it is away."""
        with suppress(psycopg.Error), self._system.connect() as connection:
            row = connection.execute(
                "select extract(epoch from now() - %s)::float", (self.start,)
            ).fetchone()
            return float(row[0]) if row else None
        return None

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            with suppress(psycopg.Error), self._system.connect() as connection:
                while not self._stopping.wait(0.1):
                    limited, keyed = connection.execute(_RUNNING).fetchall()[0]
                    self.most_limited = max(self.most_limited, limited)
                    self.most_keyed = max(self.most_keyed, keyed)


def live_jobs(system: System) -> int | None:
    """How many have not ended; None while the database is away."""
    with suppress(psycopg.Error), system.connect() as connection:
        return int(_one(connection, _UNSETTLED))
    return None


def read_history(system: System, observer: Observer, ledger: Ledger) -> History:
    values = {"start": observer.start}
    with system.connect() as connection:
        jobs = [Job(*row) for row in connection.execute(_JOBS, values).fetchall()]
        attempts = [Attempt(*row) for row in connection.execute(_ATTEMPTS, values).fetchall()]
        effects = [row[0] for row in connection.execute("select job_id from chaos.effects")]
        slots = connection.execute(_SLOTS, values).fetchall()
        events: dict[int, int] = dict(
            connection.execute(
                "select event_id, count(job_id) from mainspring.dispatches group by 1"
            ).fetchall()
        )
        undispatched = [
            row[0]
            for row in connection.execute(
                "select event_id from mainspring.events where handled_at is null"
            )
        ]
    return History(
        committed={
            n: ledger.kinds[n] for n, fate in ledger.fates.items() if fate is Fate.COMMITTED
        },
        rolled_back={n for n, fate in ledger.fates.items() if fate is Fate.ROLLED_BACK},
        jobs=jobs,
        attempts=attempts,
        effects=effects,
        slots=slots,
        events=events,
        undispatched=undispatched,
        most_limited=observer.most_limited,
        most_keyed=observer.most_keyed,
    )


def _one(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
