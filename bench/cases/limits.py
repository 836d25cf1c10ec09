"""Limits: what they cost those who have none, and how fast those go that have one."""

from dataclasses import replace
from typing import Final

import psycopg

from bench.benches import Bench
from bench.cases import drain
from bench.catalogue import System
from bench.measurements import Measurement
from bench.processes import ProcessFailed

_BESIDE: Final = 100_000
_KEYS: Final = 1_000
_PLACES: Final = 10
_BATCH: Final = 20_000

_FREE: Final = "select count(*) from mainspring.jobs where definition = 'noop'"
# As the app of bench.systems.mainspring_ declares them.
_DEFINE: Final = """
insert into mainspring.definitions (key, kind, queue, concurrency, key_concurrency, limit_by)
values ('held', 'python', 'bench', 1, null, null), ('keyed', 'python', 'bench', null, 10, '{n}')
on conflict do nothing
"""
_ENQUEUE: Final = """
select count(*) from mainspring.enqueue_many(%(key)s::text, array(
    select jsonb_build_object('n', n %% %(keys)s) from generate_series(1, %(count)s) as n))
"""
_MOST_AT_ONCE: Final = """
select max(running) from (
    select sum(step) over (partition by key order by at, step) as running from (
        select job.payload ->> 'n' as key, began.at, began.step
          from mainspring.attempts as attempt
          join mainspring.jobs_history as job using (job_id),
               lateral (values (attempt.started_at, 1), (attempt.finished_at, -1))
                   as began (at, step)
         where job.definition = 'keyed') as steps) as counted
"""


def beside(bench: Bench, system: System) -> list[Measurement]:
    """The plain drain, while others wait for a limit; the one of theirs that may run does so."""
    queued = bench.scaled(system.sizes.drain)
    counted = replace(system, unfinished=_FREE)

    def measure() -> float:
        with bench.database(system, queued=queued) as dsn:
            _enqueue(dsn, "held", bench.scaled(_BESIDE))
            return drain.timed(dsn, counted, drain.whole(queued), queued=queued)

    return drain.judged("drain_beside_limited", bench, system, rate=measure)


def by_key(bench: Bench, system: System) -> list[Measurement]:
    queued = bench.scaled(system.sizes.drain)

    def measure() -> float:
        with bench.database(system) as dsn:
            _enqueue(dsn, "keyed", queued)
            value = drain.timed(dsn, system, drain.whole(queued), queued=queued)
            _ensure_kept(dsn)
        return value

    return drain.judged("drain_keys", bench, system, rate=measure)


def _enqueue(dsn: str, key: str, count: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_DEFINE)
        for start in range(0, count, _BATCH):
            some = {"key": key, "keys": _KEYS, "count": min(_BATCH, count - start)}
            connection.execute(_ENQUEUE, some)
        connection.execute("vacuum (analyze) mainspring.jobs")
        connection.execute("checkpoint")


def _ensure_kept(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(_MOST_AT_ONCE).fetchone()
    if row is None or row[0] > _PLACES:
        raise ProcessFailed(f"{row and row[0]} jobs of one key ran at once, {_PLACES} may")
