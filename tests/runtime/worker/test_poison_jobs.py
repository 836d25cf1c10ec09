"""A job that takes its worker down is parked; those that were near it are not."""

from functools import partial

import psycopg

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker, WorkerProcess
from tests.support.waiting import wait_until


def test_a_job_that_kills_its_worker_is_parked_and_the_others_succeed(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    shared_app.enqueue_many(apps.linger_twice, [{}] * 20)
    poison = apps.kill_the_worker.enqueue().id
    shared_app.enqueue_many(apps.linger_twice, [{}] * 20)

    restart_until_quiet(connection, start_worker)

    assert reading.states(connection) == {"dead_letter": 1, "succeeded": 40}
    assert {2} <= losses_of(connection, "linger_twice"), "none was near when the worker died twice"
    assert reading.statuses(connection, poison) == ["lost", "lost", "lost"]
    job = reading.job(connection, poison)
    assert (job["losses"], job["failures"]) == (3, 0)
    assert job["last_error"] == "its worker died 3 times while running it"


def restart_until_quiet(connection: psycopg.Connection, start_worker: StartWorker) -> None:
    """Start a worker whenever the last one died, until all jobs have ended."""
    while not is_quiet(connection):
        worker = start_worker()
        wait_until(partial(is_over, connection, worker), 20, "all jobs end or the worker dies")
    worker.stop()


def is_over(connection: psycopg.Connection, worker: WorkerProcess) -> bool:
    return not worker.is_alive or is_quiet(connection)


def losses_of(connection: psycopg.Connection, definition: str) -> set[int]:
    query = "select distinct losses from mainspring.job_status where definition = %s"
    return {row[0] for row in connection.execute(query, (definition,))}


def is_quiet(connection: psycopg.Connection) -> bool:
    return not reading.states(connection).keys() & {"queued", "running"}
