"""What one of our workers holds in memory with 1,000 jobs running."""

from typing import Final

import psutil

from bench import processes, stamps
from bench.benches import Bench
from bench.catalogue import System
from bench.measurements import MEBIBYTES, Measurement

_JOBS: Final = 1_000
_MEBIBYTE: Final = 1024 * 1024


def measure(bench: Bench, system: System) -> list[Measurement]:
    with (
        bench.database(system, queued=_JOBS) as dsn,
        stamps.pipe() as pipe,
        stamps.reading(pipe) as descriptor,
        processes.working(system, dsn, concurrency=_JOBS, handler="hold", stamps=pipe) as workers,
    ):
        for _ in range(_JOBS):
            stamps.following(descriptor)
        resident = sum(_resident(pid) for pid in workers.pids)
    return [Measurement("memory", system.name, resident / _MEBIBYTE, MEBIBYTES)]


def _resident(pid: int) -> int:
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    return sum(int(member.memory_info().rss) for member in family)
