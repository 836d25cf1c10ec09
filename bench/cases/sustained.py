"""What one worker finishes a second while a producer enqueues 500 at a time without rest."""

import time
from typing import Any, Final

import psycopg
from psycopg import Connection

from bench import processes
from bench.benches import Bench
from bench.catalogue import System
from bench.measurements import JOBS_PER_SECOND, Measurement
from bench.progress import Sample
from bench.servers import count

_WARM_UP_SECONDS: Final = 2.0


def measure(bench: Bench, system: System) -> list[Measurement]:
    # Longer than is measured, so that the producer never stops first.
    seconds = _WARM_UP_SECONDS + bench.seconds + 30
    with (
        bench.database(system) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        processes.working(system, dsn) as workers,
        processes.started(system, "produce", dsn, batch=500, seconds=seconds),
    ):
        value = _rate(connection, system, bench.seconds)
        workers.ensure_alive()
    return [Measurement("sustained", system.name, value, JOBS_PER_SECOND)]


def _rate(connection: Connection[Any], system: System, seconds: float) -> float:
    _wait_for_first(connection, system)
    time.sleep(_WARM_UP_SECONDS)
    first = _sample(connection, system)
    time.sleep(seconds)
    last = _sample(connection, system)
    return (last.done - first.done) / (last.at - first.at)


def _wait_for_first(connection: Connection[Any], system: System) -> None:
    until = time.perf_counter() + 30
    while not count(connection, system.finished):
        if time.perf_counter() > until:
            raise TimeoutError("no job finished within 30 s")
        time.sleep(0.1)


def _sample(connection: Connection[Any], system: System) -> Sample:
    return Sample(time.perf_counter(), count(connection, system.finished))
