"""Tenants beside each other: what it costs to share a queue among a hundred of them, and how many
jobs of one start before the last of another that has just come.

Handlers say through a pipe that they begin, and for whom, so starts are counted in the order they
happened. A newcomer's time is taken when its commit returns: until then it has enqueued nothing.
"""

import os
import select
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import Connection

from bench import processes, stamps
from bench.benches import Bench
from bench.cases import drain
from bench.catalogue import System
from bench.handlers import TRACE
from bench.measurements import JOBS, Measurement
from bench.processes import ProcessFailed, Workers
from bench.systems.driver import QUEUE

_TENANTS: Final = 100
_NEWCOMERS: Final = 5
_JOBS_EACH: Final = 100
_SETTLE_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 30.0
_READ_BYTES: Final = 1 << 16

_ENQUEUE: Final = """
select count(*) from mainspring.enqueue_many(
    'noop', array(select jsonb_build_object('n', -%(number)s::integer)
                    from generate_series(1, %(count)s)),
    tenant => %(tenant)s, queue => %(queue)s)
"""

Start = tuple[float, int]


def hundred_tenants(bench: Bench, system: System) -> list[Measurement]:
    queued = bench.scaled(system.sizes.drain)

    def measure() -> float:
        with bench.database(system, queued=queued, tenants=_TENANTS) as dsn:
            return drain.timed(dsn, system, drain.whole(queued), queued=queued)

    return drain.judged("drain_100_tenants", bench, system, rate=measure)


def newcomers(bench: Bench, system: System) -> list[Measurement]:
    """One tenant has a backlog; others come one after the other, each with a hundred jobs."""
    with (
        bench.database(system, queued=bench.scaled(system.sizes.backlog)) as dsn,
        psycopg.connect(dsn) as connection,
        stamps.pipe() as pipe,
        stamps.reading(pipe) as descriptor,
        _following(descriptor) as starts,
        processes.working(system, dsn, handler="trace", stamps=pipe) as running,
    ):
        _wait_for(lambda: bool(starts), running)
        waits = [_one_comes(connection, starts, running, number=n + 1) for n in range(_NEWCOMERS)]
    return [
        Measurement("fair_share_wait", system.name, statistics.median(waits), JOBS),
        Measurement("fair_share_worst", system.name, max(waits), JOBS),
    ]


def _one_comes(
    connection: Connection[Any], starts: list[Start], running: Workers, *, number: int
) -> int:
    """How many jobs of others start from the newcomer's commit to the start of its last job."""
    time.sleep(_SETTLE_SECONDS)
    tenant = f"newcomer{number}"
    connection.execute("insert into mainspring.tenants (tenant_id) values (%s)", (tenant,))
    options = {"number": number, "count": _JOBS_EACH, "tenant": tenant, "queue": QUEUE}
    connection.execute(_ENQUEUE, options)
    connection.commit()
    committed_at = time.time()
    _wait_for(lambda: _count(starts, number) == _JOBS_EACH, running)
    seen = list(starts)
    last = max(place for place, (_, n) in enumerate(seen) if n == -number)
    others = sum(1 for at, n in seen[:last] if at >= committed_at and n != -number)
    if not any(n >= 0 for _, n in starts[last + 1 :]):
        raise ProcessFailed("the backlog was gone before the newcomer; measure more (--jobs)")
    return others


def _count(starts: list[Start], number: int) -> int:
    return sum(1 for _, n in starts[-20_000:] if n == -number)


@contextmanager
def _following(descriptor: int) -> Iterator[list[Start]]:
    """The starts that handlers report, added as they come."""
    starts: list[Start] = []
    is_over = threading.Event()

    def follow() -> None:
        rest = b""
        while not is_over.is_set():
            if select.select([descriptor], [], [], 0.1)[0]:
                rest += os.read(descriptor, _READ_BYTES)
                whole = len(rest) - len(rest) % TRACE.size
                starts.extend(TRACE.iter_unpack(rest[:whole]))
                rest = rest[whole:]

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield starts
    finally:
        is_over.set()
        thread.join()


def _wait_for(is_met: Callable[[], bool], running: Workers) -> None:
    until = time.perf_counter() + _PATIENCE_SECONDS
    while not is_met():
        running.ensure_alive()
        if time.perf_counter() > until:
            raise ProcessFailed(f"nothing in {_PATIENCE_SECONDS:.0f} s: {running.output()}")
        time.sleep(0.02)
