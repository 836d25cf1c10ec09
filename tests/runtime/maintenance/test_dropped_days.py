"""A day of a million finished jobs is dropped while a worker drains: how much slower the drain is.

    make soak

Prints the rates of the drains before, beside and after it, and their ratio, of one run.
"""

import asyncio
import sys
import threading
import time

import psycopg
import pytest

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.runtime.maintenance.pruning import drop_partitions
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

ROWS = 1_000_000
DRAINED = 10_000
# docs/guarantees.md promises 5 %; two drains of one run differ by as much on a machine with other
# work, and that is allowed on top.
MOST_SLOWER = 0.05
NOISE = 0.05
MAKE_DAY = """
do $$
declare
    day date := (now() at time zone 'utc')::date - 20;
    parent text;
begin
    foreach parent in array array['jobs_history', 'attempts'] loop
        execute format(
            'create table mainspring.%I partition of mainspring.%I for values from (%L) to (%L)',
            parent || to_char(day, '_YYYYMMDD'), parent, day || 'T00:00Z', day + 1 || 'T00:00Z');
    end loop;
end
$$
"""
FILL = """
with ended as (
    insert into mainspring.jobs_history
           (job_id, definition, queue, state, attempt, created_at, scheduled_for, started_at,
            finished_at)
    select nextval('mainspring.job_ids'), 'do_nothing', 'default', 'succeeded', 1, at, at, at, at
      from generate_series(0, %s - 1) as number,
           lateral (select date_trunc('day', now(), 'UTC') - interval '20 days'
                           + interval '23 hours' * number / %s) as moment (at)
    returning job_id, finished_at
)
insert into mainspring.attempts
       (job_id, fence, worker_id, number, status, started_at, finished_at)
select job_id, 1, 1, 1, 'succeeded', finished_at, finished_at from ended
"""
SHORTEN = "update mainspring.retention set keep = '10 days' where state is null"
ENQUEUE = """
select count(*) from (
    select mainspring.enqueue('do_nothing', jsonb_build_object('number', number))
      from generate_series(1, %s) as number offset 0) as made
"""
LIVE = "select exists (select from mainspring.jobs)"
ENDED = """
select extract(epoch from max(finished_at) - min(started_at))::float, count(*)
  from mainspring.jobs_history where job_id > %s
"""
LAST = "select last_value from mainspring.job_ids"
DAYS = """
select count(*) from pg_class
 where relname ~ '_[0-9]{8}$' and right(relname, 8)::date < now()::date - 15 and relkind = 'r'
"""


def drain(connection: psycopg.Connection, beside: threading.Thread | None = None) -> float:
    """Jobs per second; the thread is started when they are there."""
    ((last,),) = connection.execute(LAST).fetchall()
    connection.execute(ENQUEUE, (DRAINED,))
    if beside is not None:
        beside.start()
    wait_until(lambda: connection.execute(LIVE).fetchone() == (False,), 120, "all has run")
    ((seconds, count),) = connection.execute(ENDED, (last,)).fetchall()
    assert count == DRAINED
    return float(count / seconds)


def test_dropping_a_day_of_a_million_jobs_hardly_slows_a_drain(
    connection: psycopg.Connection,
    database_url: str,
    start_worker: StartWorker,
    capsys: pytest.CaptureFixture[str],
):
    connection.execute(MAKE_DAY)
    connection.execute(FILL, (ROWS, ROWS))
    connection.execute("vacuum analyze mainspring.jobs_history")
    start_worker("--concurrency", "20").started(connection)
    drain(connection)
    took: list[float] = []

    async def drop() -> None:
        cleaning = ReconnectingConnection(database_url, name="test")
        began_at = time.monotonic()
        assert await drop_partitions(cleaning.try_once) == 2
        took.append(time.monotonic() - began_at)
        await cleaning.close()

    before = drain(connection)
    connection.execute(SHORTEN)
    dropping = threading.Thread(target=lambda: asyncio.run(drop()))
    beside = drain(connection, dropping)
    dropping.join()
    after = drain(connection)

    slower = 1 - beside / ((before + after) / 2)
    with capsys.disabled():
        sys.stdout.write(
            f"\ndrained {before:.0f}/s before, {beside:.0f}/s beside and {after:.0f}/s after a drop"
            f" of {took[0]:.2f} s: {slower:.1%} slower\n"
        )
    assert connection.execute(DAYS).fetchone() == (0,)
    assert slower < MOST_SLOWER + NOISE
