"""A million dead index entries that cannot be removed: every kind of job still starts at once.

    make soak

A transaction that stays open keeps the entries of finished jobs in the indexes. Prints how long
jobs of each kind waited.
"""

import sys
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

JOBS = 1_000_000
# On a quiet machine it is milliseconds; docs/guarantees.md promises a second.
LATEST_SECONDS = 2.0
FILL = """
select count(*) from mainspring.enqueue_many('do_nothing',
       array(select '{"number": 1}'::jsonb from generate_series(1, 100000)))
"""
LIVE = "select count(*) from mainspring.jobs"
ENQUEUES = {
    "fresh": "select mainspring.enqueue('do_nothing', '{\"number\": 1}')",
    "delayed": "select mainspring.enqueue('do_nothing', '{\"number\": 1}', delay => '0.5 s')",
    "new priority": "select mainspring.enqueue('do_nothing', '{\"number\": 1}', priority => 7)",
    "retried": "select mainspring.enqueue('use_the_context')",
}
# Since it was due, or since its first attempt ended.
WAITED = """
select extract(epoch from started_at - greatest(scheduled_for, created_at, (
           select max(attempt.started_at) from mainspring.attempts as attempt
            where attempt.job_id = job.job_id and attempt.status = 'failed')))::float
  from mainspring.jobs_history as job where job_id = %s and state = 'succeeded'
"""


@pytest.fixture
def holder(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from mainspring.jobs")
        yield connection


def test_every_kind_of_job_starts_at_once_beside_a_million_dead_entries(
    connection: psycopg.Connection,
    start_worker: StartWorker,
    holder: psycopg.Connection,
    capsys: pytest.CaptureFixture[str],
):
    worker = start_worker()
    worker.started(connection)
    for _ in range(JOBS // 100_000):
        connection.execute(FILL)
        wait_until(lambda: connection.execute(LIVE).fetchone() == (0,), 300, "all jobs end")
    waited = {kind: measured(connection, sql) for kind, sql in ENQUEUES.items()}

    assert worker.stop() == 0
    job_id = enqueued(connection, ENQUEUES["fresh"])
    start_worker().started(connection)
    ready_at = time.monotonic()
    wait_until(lambda: has_ended(connection, job_id), 60)
    waited["first after a restart"] = time.monotonic() - ready_at
    waited["delayed after it"] = measured(connection, ENQUEUES["delayed"])

    with capsys.disabled():
        for kind, seconds in waited.items():
            sys.stdout.write(f"\n{kind}: {seconds * 1000:.0f} ms")
        sys.stdout.write("\n")
    assert {kind: each for kind, each in waited.items() if each > LATEST_SECONDS} == {}


def measured(connection: psycopg.Connection, enqueue: str) -> float:
    """The longest wait of a few."""
    worst = 0.0
    for _ in range(5):
        job_id = enqueued(connection, enqueue)
        wait_until(lambda: has_ended(connection, job_id), 60)  # noqa: B023 - it is awaited
        ((seconds,),) = connection.execute(WAITED, (job_id,)).fetchall()
        worst = max(worst, seconds)
    return worst


def enqueued(connection: psycopg.Connection, enqueue: str) -> int:
    ((job_id,),) = connection.execute(enqueue.encode()).fetchall()
    return int(job_id)


def has_ended(connection: psycopg.Connection, job_id: int) -> bool:
    return bool(connection.execute(WAITED, (job_id,)).fetchall())
