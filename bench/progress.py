"""Watching jobs finish: samples of how many are committed as finished, and the rate they give.

Counting rows costs the server time, so the watcher waits twenty times as long as the last count
took: never more than a twentieth of one core, at most 50 samples a second. The first job done and
the last are looked for more closely, else the time of some drains and not of others would lack its
slow first moments, or hold some in which nothing was left to do. Where a finished row leaves the
live table, what is left there is counted instead, which stays cheap beside a large history and says
the same, as the two rows change in one transaction.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import Connection

from bench.catalogue import System
from bench.processes import ProcessFailed, Workers
from bench.servers import count

_SHORTEST_PAUSE: Final = 0.02
_PAUSE_PER_COST: Final = 20
_STALLED_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    done: int


@dataclass(frozen=True, slots=True)
class Window:
    """Where the measured part of a drain ends, in jobs done or seconds, whichever comes first.

    It starts with the first job done, which leaves out the start of the process and nothing else:
    a later start, say at a tenth of the jobs, would hide a queue that stalls before it gets going.
    """

    end: int
    seconds: float


class Watcher:
    """Counts the jobs of a system that finished since it was made."""

    def __init__(self, connection: Connection[Any], system: System, queued: int) -> None:
        self.queued = queued
        self._connection = connection
        self._system = system
        self._before = 0 if system.unfinished else count(connection, system.finished)

    def sample(self) -> Sample:
        at = time.perf_counter()
        if self._system.unfinished:
            return Sample(at, self.queued - count(self._connection, self._system.unfinished))
        return Sample(at, count(self._connection, self._system.finished) - self._before)


@contextmanager
def watcher(dsn: str, system: System, queued: int) -> Iterator[Watcher]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield Watcher(connection, system, queued)


def rate(watched: Watcher, workers: Workers, window: Window) -> float:
    """Jobs a second from the first sample that shows a finished job to the window's end."""
    first = last = _first(watched, workers)
    for sample in samples(watched, workers, last=watched.queued):
        last = sample
        if sample.done >= window.end or sample.at - first.at >= window.seconds:
            break
    if last.done > first.done:
        return (last.done - first.done) / (last.at - first.at)
    if last.done >= window.end:
        raise ProcessFailed("all jobs finished between two samples; measure more (--jobs)")
    raise ProcessFailed(f"stalled at {last.done} jobs: {workers.output()}")


def _first(watched: Watcher, workers: Workers) -> Sample:
    return next(each for each in samples(watched, workers, pause_per_cost=0) if each.done)


def samples(
    watched: Watcher,
    workers: Workers,
    *,
    last: int | None = None,
    pause_per_cost: float = _PAUSE_PER_COST,
) -> Iterator[Sample]:
    """Without end; raises ProcessFailed when the workers die or nothing moves. Looks more often
    before the last, if it is known how many there are."""
    first = moved = watched.sample()
    while True:
        sample = watched.sample()
        cost = time.perf_counter() - sample.at
        if sample.done > moved.done:
            moved = sample
        elif sample.at - moved.at > _STALLED_SECONDS:
            raise ProcessFailed(f"stalled at {sample.done} jobs: {workers.output()}")
        yield sample
        workers.ensure_alive()
        pause = min(cost * pause_per_cost, _seconds_until(last, first, sample) / 2)
        time.sleep(max(_SHORTEST_PAUSE, pause))


def _seconds_until(done: int | None, first: Sample, now: Sample) -> float:
    """Until so many are done, if the others take as long as those between the two samples did."""
    if done is None or now.done == first.done:
        return math.inf
    return (done - now.done) * (now.at - first.at) / (now.done - first.done)
