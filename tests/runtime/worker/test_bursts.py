"""Much at once, with real workers: who else wants something done waits no longer than is stated.

    make soak

Prints what was measured.
"""

import sys
import time
from collections.abc import Iterator
from signal import SIGKILL

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

DELAYED = 50_000
# On a quiet machine it is a tenth of it.
LONGEST_WAIT = 2.0
FILL = """
select count(*) from mainspring.enqueue_many('do_nothing',
       array(select '{"number": 1}'::jsonb from generate_series(1, 50000)))
"""
ALL_DUE = """
update mainspring.jobs set waits_for = 'time', scheduled_for = now() + interval '5 s'
"""
NORMAL = "select mainspring.enqueue('nap', '{\"seconds\": 0}')"
WAITS = """
select extract(epoch from started_at - created_at)::float from mainspring.jobs_history
 where definition = 'nap' and state = 'succeeded'
"""
EARLY = "select count(*) from mainspring.jobs_history where started_at < scheduled_for"
LEFT = "select count(*) from mainspring.jobs where definition = 'do_nothing'"

SLOW, SECONDS, PLACES = 40, 4, 10
# Two workers of ten places need 8 s, and what the dead one held is begun again, each job in a
# process of its own. To start those is most of the rest where the cores are busy: 28 and 44 s were
# measured on two cores with a load of 16 to 20. Who waits for a lease is later than that.
LEASE_SECONDS = 60
LATEST_SECONDS = 60.0


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    said: list[str] = []
    yield said
    with capsys.disabled():
        sys.stdout.write("".join(f"\n{line}" for line in said) + "\n")


def left(connection: psycopg.Connection) -> int:
    ((count,),) = connection.execute(LEFT).fetchall()
    return int(count)


def test_a_normal_job_is_not_held_up_by_50_000_that_are_due_at_once(
    connection: psycopg.Connection, start_worker: StartWorker, say: list[str]
):
    connection.execute(FILL)
    connection.execute(ALL_DUE)
    for worker in [start_worker() for _ in range(2)]:
        worker.started(connection)
    assert left(connection) == DELAYED, "none was due before the workers had started"

    enqueued, began_at = 0, time.monotonic()

    def are_done() -> bool:
        nonlocal enqueued
        if time.monotonic() - began_at > enqueued * 0.1:
            connection.execute(NORMAL)
            enqueued += 1
        return left(connection) == 0

    wait_until(are_done, 300, "all jobs end")
    wait_until(lambda: len(connection.execute(WAITS).fetchall()) == enqueued, 30)

    waits = sorted(seconds for (seconds,) in connection.execute(WAITS))
    say.append(
        f"{DELAYED} jobs: {time.monotonic() - began_at:.1f} s; {enqueued} normal jobs waited"
    )
    say.append(f"half of them {waits[len(waits) // 2]:.3f} s at most, the worst {waits[-1]:.3f} s")
    assert reading.states(connection) == {"succeeded": DELAYED + enqueued}
    assert connection.execute(EARLY).fetchone() == (0,), "each was due before it began"
    assert enqueued > 10
    assert waits[-1] < LONGEST_WAIT


def test_jobs_of_a_worker_that_is_killed_twice_are_done_in_time(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker, say
):
    doomed, steady = (
        start_worker(concurrency=PLACES, lease_seconds=LEASE_SECONDS) for _ in range(2)
    )
    for worker in (doomed, steady):
        worker.started(connection)
    began_at = time.monotonic()
    jobs = shared_app.enqueue_many(apps.take_a_while, [{"seconds": SECONDS}] * SLOW)
    for seen in (15, 30):
        wait_until(lambda s=seen: len(reading.notes(connection, "began")) >= s, 30)  # type: ignore[misc]
        doomed.signal(SIGKILL)
        doomed = start_worker(concurrency=PLACES, lease_seconds=LEASE_SECONDS)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 120, "all jobs succeed")
    took = time.monotonic() - began_at

    say.append(f"{SLOW} jobs of {SECONDS} s with two kills: {took:.1f} s")
    assert reading.states(connection) == {"succeeded": len(jobs)}
    assert took < LATEST_SECONDS
