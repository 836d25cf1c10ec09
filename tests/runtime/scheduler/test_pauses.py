"""A worker that slept past its lease finds its work given away, and starts over."""

from collections.abc import Callable
from signal import SIGCONT, SIGSTOP

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker, WorkerProcess, worker_of
from tests.support.waiting import wait_until


@pytest.fixture
def sleeper(connection: psycopg.Connection, start_worker: StartWorker) -> WorkerProcess:
    worker = start_worker(lease_seconds=1.5)
    worker.started(connection)
    return worker


def sleep_until_replaced(
    connection: psycopg.Connection, sleeper: WorkerProcess, start_worker: StartWorker, job_id: int
) -> WorkerProcess:
    """Pause the worker in its job until another has done it."""
    wait_until(lambda: reading.notes(connection, "began"))
    sleeper.signal(SIGSTOP)
    other = start_worker()
    wait_until(lambda: reading.state(connection, job_id) == "succeeded")
    return other


@pytest.fixture
def held(connection: psycopg.Connection) -> Callable[[], object]:
    """Keeps the first attempt of `answer_late` from ending; called, it lets it go."""
    connection.execute(f"select pg_advisory_lock({apps.BLOCKED})")
    return lambda: connection.execute(f"select pg_advisory_unlock({apps.BLOCKED})")


def late_reports(connection: psycopg.Connection, job_id: int) -> list[str | None]:
    return [attempt["late_report"] for attempt in reading.attempts(connection, job_id)]


def test_its_late_success_is_refused_and_recorded(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    sleeper: WorkerProcess,
    held: Callable[[], object],
):
    job_id = apps.answer_late.enqueue().id
    sleep_until_replaced(connection, sleeper, start_worker, job_id)

    sleeper.signal(SIGCONT)
    held()

    wait_until(lambda: late_reports(connection, job_id) == ["succeeded", None])
    assert reading.statuses(connection, job_id) == ["lost", "succeeded"]
    assert reading.job(connection, job_id)["result"] == {"attempt": 2}


def test_its_late_success_is_recorded_even_if_nobody_took_over(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    sleeper: WorkerProcess,
    held: Callable[[], object],
):
    job_id = apps.answer_late.enqueue().id
    wait_until(lambda: reading.notes(connection, "began"))
    sleeper.signal(SIGSTOP)
    wait_until(lambda: worker_of(connection, sleeper.pid) is None)

    sleeper.signal(SIGCONT)
    held()

    wait_until(lambda: reading.statuses(connection, job_id) == ["lost", "succeeded"])
    wait_until(lambda: late_reports(connection, job_id) == ["succeeded", None])


def test_its_handler_is_canceled(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    sleeper: WorkerProcess,
):
    job_id = apps.hang_at_first.enqueue().id
    other = sleep_until_replaced(connection, sleeper, start_worker, job_id)

    sleeper.signal(SIGCONT)

    (canceled,) = wait_until(lambda: reading.notes(connection, "canceled"), 10)
    assert (canceled["attempt"], canceled["pid"]) == (1, sleeper.pid)
    wait_until(lambda: late_reports(connection, job_id) == ["canceled", None], 10)
    # It lost its worker, so the other runs it in a process of its own.
    again = reading.job(connection, job_id)["result"]
    assert again["attempt"] == 2
    assert again["pid"] not in (sleeper.pid, other.pid)


def test_it_goes_on_under_a_new_id(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    sleeper: WorkerProcess,
):
    old_id = worker_of(connection, sleeper.pid)
    job_id = apps.hang_at_first.enqueue().id
    other = sleep_until_replaced(connection, sleeper, start_worker, job_id)
    assert other.stop() == 0
    sleeper.signal(SIGCONT)
    new_id = wait_until(lambda: worker_of(connection, sleeper.pid), 10)

    again = apps.record.enqueue(number=1).id

    wait_until(lambda: reading.state(connection, again) == "succeeded", 10)
    assert new_id != old_id
    assert reading.attempts(connection, again)[0]["worker_id"] == new_id


def test_a_job_that_came_while_it_slept_is_not_left_with_the_old_id(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    sleeper: WorkerProcess,
):
    job_id = apps.hang_at_first.enqueue().id
    other = sleep_until_replaced(connection, sleeper, start_worker, job_id)
    assert other.stop() == 0
    job_ids = shared_app.enqueue_many(apps.record, [{"number": n} for n in range(50)])

    sleeper.signal(SIGCONT)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 10, "all jobs succeed")
    assert reading.states(connection) == {"succeeded": len(job_ids) + 1}
