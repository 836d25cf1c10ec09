"""How fast one caller enqueues: one job a commit, and many at once."""

from bench import processes
from bench.benches import Bench
from bench.catalogue import System
from bench.measurements import JOBS_PER_SECOND, Measurement


def single(bench: Bench, system: System) -> list[Measurement]:
    count = bench.scaled(system.sizes.single)
    with bench.database(system) as dsn:
        seconds = processes.call(system, "single", dsn, count=count)
    return [Measurement("single_enqueue", system.name, count / seconds, JOBS_PER_SECOND)]


def bulk(bench: Bench, system: System) -> list[Measurement]:
    value = bulk_rate(bench, system)
    return [Measurement("bulk_enqueue", system.name, value, JOBS_PER_SECOND)]


def bulk_rate(bench: Bench, system: System) -> float:
    count = bench.scaled(system.sizes.bulk)
    with bench.database(system) as dsn:
        seconds: float = processes.call(system, "bulk", dsn, count=count)
    return count / seconds
