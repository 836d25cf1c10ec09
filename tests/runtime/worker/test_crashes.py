"""A worker that is killed loses nothing: its jobs run again, soon, and at no cost to them."""

import socket
import time
from functools import partial
from signal import SIGKILL

import psycopg

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until


def began(connection: psycopg.Connection, count: int = 1) -> bool:
    return len(reading.notes(connection, "began")) >= count


def test_a_neighbour_takes_over_at_once(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = start_worker(lease_seconds=60)
    job_id = apps.hang_at_first.enqueue().id
    wait_until(lambda: began(connection), 30)
    neighbour = start_worker(lease_seconds=60)
    neighbour_id = neighbour.started(connection)

    doomed.kill()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 15)
    assert reading.job(connection, job_id)["result"]["attempt"] == 2
    assert reading.attempts(connection, job_id)[1]["worker_id"] == neighbour_id


def test_another_host_takes_over_when_the_lease_has_run_out(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    far = start_worker(lease_seconds=2)
    job_id = apps.hang_at_first.enqueue().id
    wait_until(lambda: began(connection), 30)
    connection.execute("update mainspring.workers set host = 'far away'")
    start_worker(lease_seconds=2).started(connection)
    killed_at = time.monotonic()

    far.kill()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 15)
    assert time.monotonic() - killed_at > 1, "a host cannot know that another's process is gone"


def test_a_worker_that_starts_later_takes_over_and_the_loss_costs_no_attempt(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = start_worker()
    job_id = apps.hang_at_first.options(max_attempts=1).enqueue().id
    wait_until(lambda: began(connection), 30)
    worker_id = doomed.started(connection)
    doomed.kill()
    start_worker()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 10)

    lost, succeeded = reading.attempts(connection, job_id)
    assert (lost["status"], lost["worker_id"], lost["number"]) == ("lost", worker_id, 1)
    died = f"worker {worker_id} (pid {doomed.pid} on {socket.gethostname()}) died: its process was"
    assert lost["error"].startswith(died)
    assert (succeeded["status"], succeeded["number"]) == ("succeeded", 2)
    job = reading.job(connection, job_id)
    assert (job["failures"], job["losses"]) == (0, 0)


def test_a_worker_that_starts_after_the_lease_says_that_the_process_of_this_host_died(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = start_worker()
    job_id = apps.hang_at_first.enqueue().id
    wait_until(lambda: began(connection), 30)
    doomed.kill()
    connection.execute("update mainspring.workers set expires_at = now() - interval '1 minute'")
    start_worker()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 10)

    assert "died: its process was killed" in reading.attempts(connection, job_id)[0]["error"]


def test_none_of_a_thousand_jobs_is_lost_when_two_workers_die_in_the_middle(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = [start_worker(concurrency=50) for _ in range(2)]
    for worker in doomed:
        worker.started(connection)
    payloads = [{"seconds": 0.02}] * 1000
    job_ids = shared_app.enqueue_many(apps.take_a_while, payloads)
    for worker, seen in zip(doomed, (100, 300), strict=True):
        wait_until(partial(began, connection, seen), 30)
        worker.signal(SIGKILL)

    start_worker()

    wait_until(lambda: reading.are_all(connection, "succeeded"), 30, "all jobs succeed")
    assert reading.states(connection) == {"succeeded": len(job_ids)}
    assert one_success_each(connection) == len(job_ids)


def one_success_each(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "select count(*), count(distinct job_id) from mainspring.attempts"
        " where status = 'succeeded'"
    ).fetchone()
    assert row is not None
    assert row[0] == row[1], "a success was recorded twice"
    return int(row[1])


def test_a_checkpoint_survives_the_worker(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    doomed = start_worker()
    job_id = apps.save_then_hang.enqueue().id
    wait_until(lambda: reading.notes(connection, "saved"), 30)
    doomed.kill()

    start_worker()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 10)
    assert reading.job(connection, job_id)["result"] == {"page": 7}
