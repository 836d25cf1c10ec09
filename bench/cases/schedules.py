"""Schedules: how fast those that are due at once are fired, how late a lone one is, and what it
costs to look when none is due.

Our own scheduler is timed from the slot itself: a tenth of its schedules fires every few seconds,
all at one instant, and the second time is measured. So the scheduler has run for a while, its rows
were written after the last checkpoint, and nothing but itself has changed them. A rival is timed
from the start of its scheduler, with all of its schedules declared, stored and due.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import Connection

from bench import processes, progress, stamps
from bench.benches import Bench
from bench.cases import enqueue
from bench.catalogue import OURS, Schedules, System
from bench.measurements import (
    JOBS_PER_SECOND,
    MILLISECONDS,
    RATIO,
    SLOTS_PER_SECOND,
    Measurement,
)
from bench.processes import ProcessFailed, Workers
from bench.progress import Sample
from bench.servers import count

_SCHEDULES: Final = 100_000
_DUE: Final = _SCHEDULES // 10
_RIVAL_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.005
_SAMPLES_PER_SLOT: Final = 5
_WARM_UP_SLOTS: Final = 3
_FEWEST_SLOTS: Final = 12
_START_SECONDS: Final = 10.0
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000

_EVERY_SECONDS: Final = 8
# By plain SQL, as anyone may. Two dozen kinds, so that not all are planned as one.
_OFTEN: Final = """
update mainspring.schedules
   set cron = null, every = %(every)s * interval '1 second', anchor_at = now(),
       misfire_grace = (60 + schedule_id / 10 %% 24) * interval '1 second'
 where schedule_id %% 10 = 0
"""
_NEXT: Final = """
select min(next_run_at), extract(epoch from min(next_run_at) - clock_timestamp())::float,
       count(distinct next_run_at)
  from mainspring.clocks where schedule_id % 10 = 0
"""
# Unlike counting slots it costs next to nothing while there are some.
_SOME_DUE: Final = """
select count(*) from (select from mainspring.clocks where next_run_at <= %(at)s limit 1) as due
"""


def fire_due(bench: Bench, system: System) -> list[Measurement]:
    """Ours is judged by its bulk enqueue, which is timed before and after."""
    if system.name != OURS:
        value = _rate_of_rival(bench, system, _schedules(system))
        return [Measurement("fire_due", system.name, value, SLOTS_PER_SECOND)]
    before = enqueue.bulk_rate(bench, system)
    value = _rate_of_ours(bench, system, _schedules(system))
    bulk = statistics.mean((before, enqueue.bulk_rate(bench, system)))
    return [
        Measurement("fire_due", system.name, value, SLOTS_PER_SECOND),
        Measurement("fire_due_bulk", system.name, bulk, JOBS_PER_SECOND),
        Measurement("fire_due_ratio", system.name, value / bulk, RATIO),
    ]


def lateness(bench: Bench, system: System) -> list[Measurement]:
    slots = max(bench.samples // _SAMPLES_PER_SLOT, _FEWEST_SLOTS)
    with (
        bench.database(system) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        processes.scheduling(system, dsn, "every_second") as running,
    ):
        late = _wait_for_slots(connection, running, system, slots=slots)
    percentiles = statistics.quantiles(late, n=100, method="inclusive")
    return [
        Measurement("schedule_lateness_p50", system.name, percentiles[49], MILLISECONDS),
        Measurement("schedule_lateness_p99", system.name, percentiles[98], MILLISECONDS),
    ]


def tick(bench: Bench, system: System) -> list[Measurement]:
    thousand = _tick(bench, system, _THOUSAND)
    million = _tick(bench, system, bench.scaled(_MILLION))
    return [
        Measurement("tick_thousand", system.name, thousand, MILLISECONDS),
        Measurement("tick_million", system.name, million, MILLISECONDS),
    ]


def _schedules(system: System) -> Schedules:
    if system.schedules is None:
        raise NotImplementedError("this system's schedules cannot be measured")
    return system.schedules


def _rate_of_ours(bench: Bench, system: System, schedules: Schedules) -> float:
    with (
        bench.database(system, scheduled=bench.scaled(_SCHEDULES)) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        processes.scheduling(system, dsn, "fire_due") as running,
    ):
        due = connection.execute(_OFTEN, {"every": _EVERY_SECONDS}).rowcount
        _fire_next(connection, running)
        # As if workers had run them: no schedule fires while an earlier job of it is live.
        connection.execute("delete from mainspring.jobs")
        seconds = _fire_next(connection, running)
        if (fired := count(connection, schedules.fired)) != due:
            raise ProcessFailed(f"{fired} of {due} slots have a job: {running.output()}")
    return due / seconds


def _fire_next(connection: Connection[Any], running: Workers) -> float:
    """The seconds from the next slot, which many schedules have in common, until none is due."""
    _wait_for(lambda: _next_slot(connection) is not None, running)
    slot, wait = _next_slot(connection) or (None, 0.0)
    due_at = time.perf_counter() + wait
    time.sleep(wait)
    ended_at = _wait_for(lambda: not count(connection, _SOME_DUE, {"at": slot}), running)
    return ended_at - due_at


def _next_slot(connection: Connection[Any]) -> tuple[Any, float] | None:
    """The instant and how many seconds it is away; None while the scheduler has not planned it
    for all of them."""
    row = connection.execute(_NEXT).fetchone()
    if row is None or row[1] is None or row[1] < 0 or row[2] != 1:
        return None
    return row[0], row[1]


def _rate_of_rival(bench: Bench, system: System, schedules: Schedules) -> float:
    due = bench.scaled(_DUE)
    counted = replace(system, finished=schedules.fired, unfinished=None)
    with (
        bench.database(system) as dsn,
        stamps.pipe() as pipe,
        stamps.reading(pipe) as descriptor,
        progress.watcher(dsn, counted, due) as watched,
        processes.scheduling(system, dsn, "fire_due", count=due, stamps=pipe) as running,
    ):
        began_at = stamps.following(descriptor) - time.time() + time.perf_counter()
        last = _last_sample(progress.samples(watched, running), due)
    return last.done / (last.at - began_at)


def _last_sample(samples: Iterator[Sample], due: int) -> Sample:
    """The one that shows all fired, or the first to come long after the first that was."""
    first = last = next(sample for sample in samples if sample.done)
    while last.done < due and last.at - first.at < _RIVAL_SECONDS:
        last = next(samples)
    return last


def _wait_for_slots(
    connection: Connection[Any], running: Workers, system: System, *, slots: int
) -> list[float]:
    """How late each was, in milliseconds; a rival that passes over some gives fewer."""
    schedules, wanted = _schedules(system), _WARM_UP_SLOTS + slots
    needed = wanted // 3 if system.is_rival else wanted
    deadline = time.perf_counter() + wanted + _START_SECONDS
    late: list[float] = []
    while len(late) < wanted and time.perf_counter() < deadline:
        time.sleep(1)
        running.ensure_alive()
        late = [float(row[0]) for row in connection.execute(schedules.lateness)]
    if len(late) < needed:
        raise ProcessFailed(f"only {len(late)} of {wanted} slots in time: {running.output()}")
    return late[_WARM_UP_SLOTS:wanted]


def _tick(bench: Bench, system: System, schedules: int) -> float:
    with bench.database(system, scheduled=schedules) as dsn:
        # What was copied for the million is written to the disk for seconds to come.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("checkpoint")
        return float(processes.call(system, "tick", dsn))


def _wait_for(is_met: Callable[[], bool], running: Workers) -> float:
    """When, by this process's counter, the first look began that found it so."""
    until = time.perf_counter() + _PATIENCE_SECONDS
    while (looked_at := time.perf_counter()) < until:
        if is_met():
            return looked_at
        running.ensure_alive()
        time.sleep(_PAUSE_SECONDS)
    raise ProcessFailed(f"nothing more in {_PATIENCE_SECONDS:.0f} s: {running.output()}")
