"""Housekeeping as a deployment meets it: a worker and a scheduler, and nothing set up."""

import psycopg

from tests.support import reading
from tests.support.processes import says
from tests.support.waiting import wait_until

INSTALLED = ["mainspring.doctor", "mainspring.prune_history", "mainspring.prune_keys"]


def names(connection: psycopg.Connection) -> list[str]:
    rows = connection.execute("select name from mainspring.schedule_status order by name")
    return [name for (name,) in rows.fetchall()]


def test_the_first_scheduler_installs_schedules_and_the_next_does_not(
    start, command, connection, database_url
):
    own = {"MAINSPRING_DATABASE_URL": database_url, "MAINSPRING_DEFAULT_SCHEDULES": "true"}
    first = start("scheduler", **own)
    says(first, "scheduler_started")
    assert f"schedules={INSTALLED}" in first.log
    assert names(connection) == INSTALLED
    assert command("schedules", "delete", "mainspring.prune_keys", "--yes").returncode == 0
    assert first.stop() == 0

    second = start("scheduler", **own)
    says(second, "scheduler_started")
    assert "schedules_installed" not in second.log
    assert len(names(connection)) == 2


def test_a_worker_without_an_app_that_serves_another_queue_runs_housekeeping(
    start, connection, database_url
):
    worker = start("worker", "--queues", "elsewhere", MAINSPRING_DATABASE_URL=database_url)
    worker.started(connection)
    ((job_id,),) = connection.execute(
        "select mainspring.enqueue('mainspring.prune_keys')"
    ).fetchall()

    wait_until(lambda: reading.state(connection, job_id) == "succeeded", 20, "the job succeeds")
    assert names(connection) == []
