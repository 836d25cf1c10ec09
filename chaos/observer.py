"""Samples a running system: what may never be exceeded, and whether the database answers."""

import threading
import time
from contextlib import suppress

import psycopg

from chaos.spans import Span
from chaos.systems import System

_EVERY_SECONDS = 0.2
# Two answers that are further apart mean that the database was away between them.
_AWAY_SECONDS = 1.0
_RUNNING = """
select coalesce(max(c) filter (where definition = 'limited'), 0),
       coalesce(max(c) filter (where definition = 'keyed'), 0)
  from (select definition, case when definition = 'keyed' then limit_key end as k, count(*) as c
          from mainspring.jobs
         where state = 'running' and definition in ('limited', 'keyed')
         group by 1, 2) as counted
"""
_LIVE = "select count(*) from mainspring.jobs"


class Observer:
    """Asks the database five times a second, on one connection."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.most_limited = self.most_keyed = 0
        self.away: list[Span] = []
        self.start = time.time()
        self._answered_at = 0.0

    def run(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def now(self) -> float:
        """Seconds since the start."""
        return time.time() - self.start

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_SECONDS):
            with suppress(psycopg.Error), self._system.connect() as connection:
                while True:
                    self._sample(connection)
                    if self._stopping.wait(_EVERY_SECONDS):
                        break

    def _sample(self, connection: psycopg.Connection) -> None:
        asked_at = self.now()
        limited, keyed = connection.execute(_RUNNING).fetchall()[0]
        self.most_limited = max(self.most_limited, limited)
        self.most_keyed = max(self.most_keyed, keyed)
        if self.now() - self._answered_at > _AWAY_SECONDS:
            self.away.append((self._answered_at, asked_at))
        self._answered_at = self.now()


def live_jobs(system: System) -> int | None:
    """How many have not ended; None while the database is away."""
    with suppress(psycopg.Error), system.connect() as connection:
        row = connection.execute(_LIVE).fetchone()
        return int(row[0]) if row else None
    return None
