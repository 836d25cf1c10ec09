"""Commands: what a job that runs a program costs beyond running the program."""

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Final

import psycopg

from bench import processes, progress
from bench.benches import Bench
from bench.catalogue import OURS, System
from bench.measurements import JOBS_PER_SECOND, Measurement
from bench.processes import ProcessFailed
from bench.progress import Window

_JOBS: Final = 1_000
_SECONDS: Final = 10.0
# A definition pins the program itself, and /bin is often a link.
_PROGRAM: Final = str(Path("/bin/true").resolve())
_DEFINE: Final = """
insert into mainspring.definitions (key, kind, queue, spec)
values ('nothing', 'command', 'bench',
        jsonb_build_object('argv', jsonb_build_array(%(program)s::text),
                           'executable', %(program)s::text))
"""
_ENQUEUE: Final = """
select count(*) from mainspring.enqueue_many('nothing', array(
    select '{}'::jsonb from generate_series(1, %(count)s)))
"""
_UNSUCCESSFUL: Final = """
select count(*) from mainspring.attempts where status <> 'succeeded'
"""


def spawn(bench: Bench, system: System) -> list[Measurement]:
    """One program after the other, by a worker that runs one at a time and by a bare loop."""
    count = bench.scaled(_JOBS)
    value = _by_worker(bench, system, count) if system.name == OURS else asyncio.run(_bare(count))
    return [Measurement("command_spawn", system.name, value, JOBS_PER_SECOND)]


def _by_worker(bench: Bench, system: System, count: int) -> float:
    with bench.database(system) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_DEFINE, {"program": _PROGRAM})
            connection.execute(_ENQUEUE, {"count": count})
        with (
            progress.watcher(dsn, system, count) as watched,
            processes.working(system, dsn, concurrency=1) as running,
        ):
            value = progress.rate(watched, running, Window(count * 95 // 100, _SECONDS))
        _ensure_they_ran(dsn)
    return value


def _ensure_they_ran(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(_UNSUCCESSFUL).fetchone()
    if row is None or row[0]:
        raise ProcessFailed(f"{row and row[0]} commands did not succeed")


async def _bare(count: int) -> float:
    began_at = time.perf_counter()
    for _ in range(count):
        process = await asyncio.create_subprocess_exec(
            _PROGRAM, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        await process.communicate()
    return count / (time.perf_counter() - began_at)
