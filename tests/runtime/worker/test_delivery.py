"""At most once: a job that may have begun is not run again, whatever becomes of its worker."""

from collections.abc import Callable
from functools import partial
from signal import SIGCONT, SIGSTOP
from typing import Any

import psycopg
import pytest

from mainspring import JobFunction, Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

LOST = "lost, and not run again because it runs at most once: "


def once(job: JobFunction[..., Any]) -> JobFunction[..., Any]:
    return job.options(delivery="at_most_once")


@pytest.fixture
def has_begun(connection: psycopg.Connection) -> Callable[[], bool]:
    return lambda: bool(reading.notes(connection, "began"))


def have_begun(connection: psycopg.Connection, count: int) -> bool:
    return len(reading.notes(connection, "began")) >= count


def ensure_lost(connection: psycopg.Connection, job_id: int, why: str) -> None:
    wait_until(lambda: reading.state(connection, job_id) == "dead_letter", 15)
    job = reading.job(connection, job_id)
    assert job["last_error"].startswith(LOST)
    assert why in job["last_error"]
    assert (job["delivery"], job["attempt"], job["failures"]) == ("at_most_once", 1, 0)
    assert reading.statuses(connection, job_id) == ["lost"]
    assert len(reading.notes(connection, "began")) == 1


@pytest.mark.parametrize(
    ("job", "payload"),
    [
        (apps.hang_at_first, {}),
        (apps.take_a_while_in_thread, {"seconds": 30}),
        (apps.hang_in_process, {}),
    ],
)
def test_a_job_whose_worker_was_killed_is_lost(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
    job: JobFunction[..., Any],
    payload: dict[str, Any],
):
    doomed = start_worker(lease_seconds=60)
    job_id = once(job).enqueue(**payload).id
    wait_until(has_begun, 30)
    start_worker(lease_seconds=60).started(connection)

    doomed.kill()

    ensure_lost(connection, job_id, "died: its process was killed or crashed")


def test_a_person_can_have_it_run_again(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    doomed = start_worker()
    job_id = once(apps.hang_at_first).enqueue().id
    wait_until(has_begun, 30)
    doomed.kill()
    start_worker()
    ensure_lost(connection, job_id, "died")

    shared_app.jobs.retry(job_id)

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 15)
    assert reading.statuses(connection, job_id) == ["lost", "succeeded"]
    assert reading.job(connection, job_id)["delivery"] == "at_most_once"


def test_a_job_whose_worker_slept_past_its_lease_is_lost_and_its_late_report_is_kept(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    connection.execute(f"select pg_advisory_lock({apps.BLOCKED})")
    sleeper = start_worker(lease_seconds=1.5)
    job_id = once(apps.answer_late).enqueue().id
    wait_until(has_begun, 30)
    sleeper.signal(SIGSTOP)
    start_worker()
    ensure_lost(connection, job_id, "stopped renewing its lease")

    sleeper.signal(SIGCONT)
    connection.execute(f"select pg_advisory_unlock({apps.BLOCKED})")

    def late_reports() -> list[str | None]:
        return [attempt["late_report"] for attempt in reading.attempts(connection, job_id)]

    wait_until(lambda: late_reports() == ["succeeded"], 15)
    assert reading.state(connection, job_id) == "dead_letter"


@pytest.mark.parametrize("job", [apps.take_a_while, apps.take_a_while_in_thread])
def test_a_job_that_outlasts_the_drain_is_lost(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
    job: JobFunction[..., Any],
):
    worker = start_worker("--drain-seconds", "0.2")
    job_id = once(job).enqueue(seconds=30).id
    wait_until(has_begun, 30)

    assert worker.stop() == 0

    ensure_lost(connection, job_id, "the worker stopped before the job was done")


def test_what_a_worker_had_not_begun_when_it_left_runs_elsewhere(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    has_begun: Callable[[], bool],
):
    worker = start_worker("--drain-seconds", "0.2", concurrency=1)
    once(apps.take_a_while).enqueue(seconds=30)
    wait_until(has_begun, 30)
    waiting = shared_app.enqueue_many(once(apps.record), [{"number": n} for n in range(20)])
    assert worker.stop() == 0

    start_worker()

    wait_until(lambda: reading.states(connection).get("succeeded") == len(waiting), 15)
    assert len(reading.notes(connection, "ran")) == len(waiting)
    assert all(reading.statuses(connection, job_id) == ["succeeded"] for job_id in waiting)


def test_none_of_a_thousand_jobs_runs_twice_when_two_workers_die_in_the_middle(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = [start_worker(concurrency=50) for _ in range(2)]
    for worker in doomed:
        worker.started(connection)
    job_ids = shared_app.enqueue_many(once(apps.take_a_while), [{"seconds": 0.02}] * 1000)
    for worker, seen in zip(doomed, (100, 300), strict=True):
        wait_until(partial(have_begun, connection, seen), 30)
        worker.kill()

    start_worker()

    wait_until(lambda: reading.states(connection).keys() <= {"succeeded", "dead_letter"}, 30)
    began = [note["job_id"] for note in reading.notes(connection, "began")]
    assert len(began) == len(set(began)), "a job began twice"
    states = reading.states(connection)
    assert sum(states.values()) == len(job_ids)
    assert states["succeeded"] >= len(set(began)) - states["dead_letter"]
    # Those that were only claimed are not lost: at most what can run at a time, and what was about
    # to begin, is.
    assert 0 < states["dead_letter"] <= 200


def test_a_handler_that_fails_or_kills_its_own_process_is_not_tried_again(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    job_id = once(apps.kill_own_process).options(max_attempts=1).enqueue().id

    start_worker()

    wait_until(lambda: reading.state(connection, job_id) == "dead_letter", 30)
    assert reading.statuses(connection, job_id) == ["failed"]
    assert len(reading.notes(connection, "began")) == 1
