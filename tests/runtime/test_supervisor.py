"""Several worker processes under one, and one that is replaced when its code changes."""

import os
from pathlib import Path
from signal import SIGINT, SIGKILL

import psycopg

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker
from tests.support.waiting import wait_until

OWN_APP = """
from mainspring import Mainspring

app = Mainspring()

@app.job
async def answer() -> int:
    return {answer}
"""


def pids(connection: psycopg.Connection) -> set[int]:
    return {worker["pid"] for worker in reading.workers(connection) if worker["is_alive"]}


def two(connection: psycopg.Connection) -> set[int]:
    """The two worker processes, once there are two."""
    wait_until(lambda: len(pids(connection)) == 2, 30)
    return pids(connection)


def test_every_process_works(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    start_worker("--processes", "2", "--concurrency", "1")
    workers = two(connection)

    # More than one of them claims ahead before it hands back what it does not get to.
    shared_app.enqueue_many(apps.take_a_while, [{"seconds": 0.1}] * 40)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 20)
    assert {note["pid"] for note in reading.notes(connection, "done")} == workers


def test_a_process_that_dies_is_replaced(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    supervisor = start_worker("--processes=2")
    victim, other = two(connection)

    os.kill(victim, SIGKILL)

    wait_until(lambda: victim not in pids(connection) and len(pids(connection)) == 2, 15)
    assert other in pids(connection)
    assert supervisor.stop() == 0


def test_they_finish_and_stop_when_it_is_killed(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    supervisor = start_worker("--processes", "2", drain_seconds=10)
    two(connection)
    job_id = apps.take_a_while.enqueue(seconds=1).id
    wait_until(lambda: reading.notes(connection, "began"))

    supervisor.kill()

    wait_until(lambda: reading.workers(connection) == [], 15)
    assert reading.statuses(connection, job_id) == ["succeeded"]
    assert supervisor.log.count("supervisor_gone") == 2


def test_ctrl_c_in_a_terminal_reaches_them_once(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    supervisor = start_worker("--processes", "2", drain_seconds=10)
    two(connection)
    job_id = apps.take_a_while.enqueue(seconds=1).id
    wait_until(lambda: reading.notes(connection, "began"))

    supervisor.signal_group(SIGINT)

    assert supervisor.exit_code() == 0
    assert reading.statuses(connection, job_id) == ["succeeded"]
    assert reading.workers(connection) == []


def test_they_give_up_together_what_cannot_start(start_worker: StartWorker):
    supervisor = start_worker("--processes", "2", app="tests.support.apps:nothing")

    assert supervisor.exit_code() == 2
    assert "the module 'tests.support.apps' has no 'nothing'" in supervisor.log
    assert "Traceback" not in supervisor.log


def test_a_change_of_the_code_is_run(
    connection: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
):
    code = tmp_path / "own.py"
    code.write_text(OWN_APP.format(answer=1))
    worker = start_worker("--reload", app="own:app", cwd=tmp_path)
    wait_until(lambda: result_of(connection) == 1, 30)

    code.write_text(OWN_APP.format(answer=22))

    wait_until(lambda: result_of(connection) == 22, 30)
    assert worker.stop() == 0


def result_of(connection: psycopg.Connection) -> int | None:
    """What the newest answer was; asks for another if there is none on its way."""
    newest = connection.execute(
        "select state, result from mainspring.job_status order by job_id desc limit 1"
    ).fetchone()
    known = connection.execute("select key from mainspring.definitions where key = 'answer'")
    if known.fetchone() and (newest is None or newest[0] == "succeeded"):
        connection.execute("select mainspring.enqueue('answer')")
    return newest[1] if newest else None
