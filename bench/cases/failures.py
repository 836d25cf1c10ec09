"""What failures cost: a drain in which every fifth job fails once, and is tried again at once."""

from typing import Final

import psycopg

from bench.benches import Bench
from bench.cases import drain
from bench.catalogue import System
from bench.measurements import Measurement
from bench.processes import ProcessFailed

_BATCH: Final = 20_000
# As the app of bench.systems.mainspring_ declares it.
_DEFINE: Final = """
insert into mainspring.definitions (key, kind, queue, backoff_base, backoff_jitter)
values ('failing', 'python', 'bench', '0', '0') on conflict do nothing
"""
_ENQUEUE: Final = """
select count(*) from mainspring.enqueue_many('failing', array(
    select jsonb_build_object('n', n)
      from generate_series(%(start)s::integer, %(start)s::integer + %(count)s::integer - 1) as n))
"""
_FAILED: Final = "select count(*) from mainspring.attempts where status = 'failed'"


def once(bench: Bench, system: System) -> list[Measurement]:
    queued = bench.scaled(system.sizes.drain)

    def measure() -> float:
        with bench.database(system) as dsn:
            _enqueue(dsn, queued)
            value = drain.timed(dsn, system, drain.whole(queued), queued=queued)
            _ensure_failed(dsn, queued)
        return value

    return drain.judged("drain_failing", bench, system, rate=measure)


def _enqueue(dsn: str, count: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_DEFINE)
        for start in range(0, count, _BATCH):
            connection.execute(_ENQUEUE, {"start": start, "count": min(_BATCH, count - start)})
        connection.execute("vacuum (analyze) mainspring.jobs")
        connection.execute("checkpoint")


def _ensure_failed(dsn: str, queued: int) -> None:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(_FAILED).fetchone()
    # The window ends a little before the last job.
    if row is None or row[0] < queued // 6:
        raise ProcessFailed(f"{row and row[0]} attempts of {queued} jobs failed, a fifth should")
