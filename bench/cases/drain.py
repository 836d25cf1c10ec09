"""How fast workers get through a queue: plain, beside a history, with a backlog behind, and while
another session holds a snapshot, so that nothing dead can be removed.
"""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import psycopg

from bench import processes, progress
from bench.benches import Bench
from bench.catalogue import OURS, System
from bench.measurements import JOBS_PER_SECOND, Measurement
from bench.progress import Window

_SECONDS: Final = 5.0
_SNAPSHOT_SECONDS: Final = 25.0
_SNAPSHOT_SECONDS_OF_A_RIVAL: Final = 8.0
_HISTORY: Final = 1_000_000


def one_worker(bench: Bench, system: System) -> list[Measurement]:
    queued = bench.scaled(system.sizes.drain)
    return [_measured("drain_1", system, _drain(bench, system, queued=queued))]


def two_workers(bench: Bench, system: System) -> list[Measurement]:
    # Twice the jobs, so that a second process that comes up a little later weighs less.
    queued = bench.scaled(system.sizes.drain * 2)
    return [_measured("drain_2", system, _drain(bench, system, queued=queued, workers=2))]


def with_history(bench: Bench, system: System) -> list[Measurement]:
    """Ours is drained with and without the history in turns, with, without, without, with, since
    the two are to be told apart more finely than one drain is like the next."""
    queued, finished = bench.scaled(system.sizes.drain), bench.scaled(_HISTORY)
    if system.name != OURS:
        beside = _drain(bench, system, queued=queued, finished=finished)
        return [_measured("drain_history", system, beside)]
    rows = (finished, 0, 0, finished)
    rates = [_drain(bench, system, queued=queued, finished=count) for count in rows]
    return [
        _measured("drain_history", system, statistics.mean((rates[0], rates[3]))),
        _measured("drain_history_free", system, statistics.mean((rates[1], rates[2]))),
    ]


def with_backlog(bench: Bench, system: System) -> list[Measurement]:
    """The same jobs as in the plain drain are timed, with the rest of the backlog behind them."""
    queued = bench.scaled(system.sizes.backlog)
    window = _window(min(bench.scaled(system.sizes.drain), queued))
    return [_measured("drain_backlog", system, _drain(bench, system, queued=queued, window=window))]


def with_snapshot(bench: Bench, system: System) -> list[Measurement]:
    """A long drain with and without the snapshot; a slow system is timed over its first part."""
    queued = bench.scaled(system.sizes.snapshot)
    seconds = _SNAPSHOT_SECONDS_OF_A_RIVAL if system.is_rival else _SNAPSHOT_SECONDS
    window = Window(queued * 95 // 100, seconds)
    held = _drain(bench, system, queued=queued, window=window, holds_snapshot=True)
    free = _drain(bench, system, queued=queued, window=window)
    return [
        _measured("drain_snapshot", system, held),
        _measured("drain_snapshot_free", system, free),
    ]


def _drain(
    bench: Bench,
    system: System,
    *,
    queued: int,
    finished: int = 0,
    workers: int = 1,
    window: Window | None = None,
    holds_snapshot: bool = False,
) -> float:
    with (
        bench.database(system, queued=queued, finished=finished) as dsn,
        _held_snapshot(dsn) if holds_snapshot else nullcontext(),
        progress.watcher(dsn, system, queued) as watched,
        processes.working(system, dsn, count=workers) as running,
    ):
        return progress.rate(watched, running, window or _window(queued))


def _window(queued: int) -> Window:
    return Window(queued * 95 // 100, _SECONDS)


@contextmanager
def _held_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("begin isolation level repeatable read")
        connection.execute("select 1")
        yield
        connection.execute("rollback")


def _measured(case: str, system: System, value: float) -> Measurement:
    return Measurement(case, system.name, value, JOBS_PER_SECOND)
