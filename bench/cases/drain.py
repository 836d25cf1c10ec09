"""How fast workers get through a queue: plain, beside a history, with a backlog behind, and while
another session holds a snapshot, so that nothing dead can be removed.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import psycopg

from bench import processes, progress
from bench.benches import Bench
from bench.catalogue import OURS, System
from bench.measurements import JOBS_PER_SECOND, RATIO, Measurement
from bench.progress import Window
from bench.turns import Pair, Rate, in_turns

_SECONDS: Final = 5.0
_SNAPSHOT_SECONDS: Final = 25.0
_SNAPSHOT_SECONDS_OF_A_RIVAL: Final = 8.0
_HISTORY: Final = 1_000_000
# What has to be as fast as without is told from what is not quite by many drains only.
_OFTEN: Final = 8


def one_worker(bench: Bench, system: System) -> list[Measurement]:
    return [_measured("drain_1", system, plain(bench, system))]


def two_workers(bench: Bench, system: System) -> list[Measurement]:
    # Twice the jobs, so that a second process that comes up a little later weighs less.
    queued = bench.scaled(system.sizes.drain * 2)
    return [_measured("drain_2", system, _drain(bench, system, queued=queued, workers=2))]


def with_history(bench: Bench, system: System) -> list[Measurement]:
    queued, finished = bench.scaled(system.sizes.drain), bench.scaled(_HISTORY)

    def beside() -> float:
        return _drain(bench, system, queued=queued, finished=finished)

    return judged("drain_history", bench, system, rate=beside, each=_OFTEN)


def with_backlog(bench: Bench, system: System) -> list[Measurement]:
    """The same jobs as in the plain drain are timed, with the rest of the backlog behind them."""
    queued = bench.scaled(system.sizes.backlog)
    window = whole(min(bench.scaled(system.sizes.drain), queued))

    def ahead() -> float:
        return _drain(bench, system, queued=queued, window=window)

    return judged("drain_backlog", bench, system, rate=ahead, each=_OFTEN)


def with_snapshot(bench: Bench, system: System) -> list[Measurement]:
    """A long drain with and without the snapshot; a slow system is timed over its first part."""
    queued = bench.scaled(system.sizes.snapshot)
    seconds = _SNAPSHOT_SECONDS_OF_A_RIVAL if system.is_rival else _SNAPSHOT_SECONDS
    window = Window(queued * 95 // 100, seconds)

    def held() -> float:
        return _drain(bench, system, queued=queued, window=window, holds_snapshot=True)

    def free() -> float:
        return _drain(bench, system, queued=queued, window=window)

    if system.name == OURS:
        return _pair("drain_snapshot", system, in_turns(held, free, each=2))
    return [
        _measured("drain_snapshot", system, held()),
        _measured("drain_snapshot_free", system, free()),
    ]


def judged(
    case: str, bench: Bench, system: System, *, rate: Rate, each: int = 4
) -> list[Measurement]:
    """A drain of ours in turns with the plain one that it is judged by; that of others alone."""
    if system.name != OURS:
        return [_measured(case, system, rate())]
    pair = in_turns(rate, lambda: plain(bench, system), each=each)
    return _pair(case, system, pair)


def plain(bench: Bench, system: System) -> float:
    return _drain(bench, system, queued=bench.scaled(system.sizes.drain))


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
    ):
        return timed(dsn, system, window or whole(queued), queued=queued, workers=workers)


def timed(dsn: str, system: System, window: Window, *, queued: int, workers: int = 1) -> float:
    """The rate at which so many workers get through what is queued."""
    with (
        progress.watcher(dsn, system, queued) as watched,
        processes.working(system, dsn, count=workers) as running,
    ):
        return progress.rate(watched, running, window)


def whole(queued: int) -> Window:
    """Nearly all of it: the last few jobs are handed out unevenly."""
    return Window(queued * 95 // 100, _SECONDS)


@contextmanager
def _held_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("begin isolation level repeatable read")
        connection.execute("select 1")
        yield
        connection.execute("rollback")


def _pair(case: str, system: System, pair: Pair) -> list[Measurement]:
    return [
        _measured(case, system, pair.subject),
        _measured(f"{case}_free", system, pair.without),
        Measurement(f"{case}_ratio", system.name, pair.ratio, RATIO),
    ]


def _measured(case: str, system: System, value: float) -> Measurement:
    return Measurement(case, system.name, value, JOBS_PER_SECOND)
