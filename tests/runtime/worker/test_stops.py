"""SIGTERM: no more claims, running jobs get their time, the rest goes back at once, exit 0."""

import time
from collections.abc import Callable
from signal import SIGTERM

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until


@pytest.fixture
def has_begun(connection: psycopg.Connection) -> Callable[[], bool]:
    return lambda: bool(reading.notes(connection, "began"))


def test_a_running_job_gets_its_time(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    worker = start_worker()
    job_id = apps.take_a_while.enqueue(seconds=0.5).id
    wait_until(has_begun, 30)

    assert worker.stop() == 0

    assert reading.statuses(connection, job_id) == ["succeeded"]
    assert reading.workers(connection) == []


def test_what_comes_meanwhile_is_left_to_others(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    worker = start_worker()
    apps.take_a_while.enqueue(seconds=1)
    wait_until(has_begun, 30)
    worker.signal(SIGTERM)
    wait_until(lambda: reading.workers(connection)[0]["is_stopping"])

    late = apps.record.enqueue(number=1).id

    assert worker.exit_code() == 0
    assert reading.job(connection, late)["attempt"] == 0


@pytest.mark.parametrize("job", [apps.take_a_while, apps.take_a_while_in_thread])
def test_a_job_that_takes_too_long_goes_back_at_once(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
    job,
):
    worker = start_worker("--drain-seconds", "0.2")
    job_id = job.enqueue(seconds=30).id
    wait_until(has_begun, 30)
    stopped_at = time.monotonic()

    assert worker.stop() == 0

    assert time.monotonic() - stopped_at < 6
    row = reading.job(connection, job_id)
    assert (row["state"], row["waits_for"]) == ("queued", None)
    assert (row["failures"], row["losses"]) == (0, 0)
    assert reading.statuses(connection, job_id) == ["lost"]
    assert reading.workers(connection) == []


def test_an_idle_neighbour_takes_what_came_back_without_polling(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    worker = start_worker(drain_seconds=0, poll_seconds=60)
    job_id = apps.hang_at_first.enqueue().id
    wait_until(has_begun, 30)
    start_worker(poll_seconds=60)
    wait_until(lambda: reading.are_idle(connection, workers=2), 30)

    assert worker.stop() == 0

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 6)


def test_what_was_claimed_ahead_goes_back_unattempted(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    worker = start_worker("--drain-seconds", "0", "--concurrency", "2")
    shared_app.enqueue_many(apps.do_nothing, [{"number": n} for n in range(2000)])
    shared_app.enqueue_many(apps.take_a_while, [{"seconds": 30}] * 500)
    wait_until(lambda: len(reading.notes(connection, "began")) == 2, 30)
    worker.stop()

    query = "select attempt, count(*) from mainspring.jobs where state = 'queued' group by attempt"
    assert dict(connection.execute(query).fetchall()) == {0: 498, 1: 2}
    assert "running" not in reading.states(connection)


def test_a_second_signal_does_not_wait(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    worker = start_worker(drain_seconds=60)
    job_id = apps.take_a_while.enqueue(seconds=60).id
    wait_until(has_begun, 30)
    worker.signal(SIGTERM)
    wait_until(lambda: reading.workers(connection)[0]["is_stopping"])

    assert worker.stop() == 0

    assert reading.job(connection, job_id)["state"] == "queued"
