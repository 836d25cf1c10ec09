"""How soon an idle worker begins a job: p50 and p99 of a few hundred, one at a time."""

import statistics

from bench import processes, stamps
from bench.benches import Bench
from bench.catalogue import System
from bench.measurements import MILLISECONDS, Measurement


def measure(bench: Bench, system: System) -> list[Measurement]:
    with (
        bench.database(system) as dsn,
        stamps.pipe() as pipe,
        processes.working(system, dsn, handler="stamp", stamps=pipe),
    ):
        samples = processes.call(system, "latency", dsn, stamps=pipe, count=bench.samples)
    percentiles = statistics.quantiles(samples, n=100, method="inclusive")
    return [
        Measurement("latency_p50", system.name, percentiles[49], MILLISECONDS),
        Measurement("latency_p99", system.name, percentiles[98], MILLISECONDS),
    ]
