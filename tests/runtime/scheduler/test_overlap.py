"""A slot is due while an earlier run is live: skip it, queue it, or replace the run.

Two worker processes and a scheduler let schedules of every second loose on a job that takes
longer than that, and the tests read what came of it.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support import apps, schedules
from tests.support.processes import worker_processes
from tests.support.schedules import SECOND, SchedulerProcess, scheduler_processes
from tests.support.waiting import wait_until

LONG = {"definition": "take_a_while", "every": SECOND, "payload": {"seconds": 1.4}}
ENDLESS = {"definition": "take_a_while", "every": SECOND, "payload": {"seconds": 60}}
SLOTS = 5
TOGETHER = """
select coalesce(max(together), 0) from (
    select (select count(*) from mainspring.attempt_status as other
              join mainspring.job_status as job using (job_id)
             where job.schedule_id = run.schedule_id and other.started_at <= attempt.started_at
               and (other.finished_at is null or other.finished_at > attempt.started_at))
           as together
      from mainspring.attempt_status as attempt
      join mainspring.job_status as run using (job_id)
      join mainspring.schedules as schedule using (schedule_id)
     where schedule.name = %s) as counts
"""


@pytest.fixture(scope="module")
def database_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(apps.TABLES)
        yield url


@pytest.fixture(scope="module")
def scheduler(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SchedulerProcess]:
    """A scheduler, and two workers for its jobs."""
    folder = tmp_path_factory.mktemp("logs")
    with (
        worker_processes(database_url, folder) as start_worker,
        scheduler_processes(database_url, folder) as start_scheduler,
        psycopg.connect(database_url, autocommit=True) as connection,
    ):
        workers = [start_worker() for _ in range(2)]
        scheduler = start_scheduler()
        for worker in workers:
            worker.started(connection)
        yield scheduler


@pytest.fixture(scope="module")
def story(database_url: str, scheduler: SchedulerProcess) -> None:
    """Schedules of every kind side by side for some seconds."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for overlap in ("skip", "queue", "replace"):
            schedules.insert_schedule(connection, overlap, overlap=overlap, **LONG)
        schedules.insert_schedule(connection, "two", overlap="queue", max_running=2, **LONG)
        schedules.insert_schedule(connection, "overdue", run_timeout=SECOND, **ENDLESS)
        wait_until(lambda: schedules.decided(connection, "skip", SLOTS), 20)
        wait_until(lambda: schedules.decided(connection, "overdue", SLOTS), 20)
        connection.execute("update mainspring.schedules set enabled = false")


def together(connection: psycopg.Connection, name: str) -> Any:
    """The most runs of a schedule that were there at one time."""
    ((most,),) = connection.execute(TOGETHER, (name,)).fetchall()
    return most


def run_states(connection: psycopg.Connection, name: str) -> list[str]:
    """How the runs that have ended did so, in the order of their slots."""
    slots = schedules.slots(connection, name)
    return [slot["run_state"] for slot in slots if slot["run_state"]]


def await_end(connection: psycopg.Connection, name: str) -> list[schedules.Row]:
    """The jobs of a schedule once the last has ended."""

    def ended() -> list[schedules.Row]:
        jobs = schedules.jobs(connection, name)
        return jobs if all(job["finished_at"] for job in jobs) else []

    return wait_until(ended, 20, f"the jobs of {name} end")


@pytest.mark.usefixtures("story")
def test_skip_leaves_slots_out_while_a_run_is_live(connection: psycopg.Connection):
    slots = schedules.slots(connection, "skip")

    assert [slot["outcome"] for slot in slots][:2] == ["enqueued", "skipped"]
    assert {slot["reason"] for slot in slots if slot["outcome"] == "skipped"} == {
        "an earlier run is still live (overlap = skip)"
    }
    assert len(await_end(connection, "skip")) == schedules.outcomes(connection, "skip").count(
        "enqueued"
    )
    assert set(run_states(connection, "skip")) == {"succeeded"}
    assert together(connection, "skip") == 1


@pytest.mark.usefixtures("story")
def test_queue_runs_every_slot_in_order_and_one_at_a_time(connection: psycopg.Connection):
    jobs = await_end(connection, "queue")

    assert "skipped" not in schedules.outcomes(connection, "queue")
    assert run_states(connection, "queue") == ["succeeded"] * len(jobs)
    assert len(jobs) >= 3
    starts = [job["started_at"] for job in jobs]
    assert starts == sorted(starts)
    assert together(connection, "queue") == 1


@pytest.mark.usefixtures("story")
def test_queue_runs_as_many_at_a_time_as_may_be(connection: psycopg.Connection):
    jobs = await_end(connection, "two")

    assert run_states(connection, "two") == ["succeeded"] * len(jobs)
    assert together(connection, "two") == 2


@pytest.mark.usefixtures("story")
def test_replace_stops_the_earlier_run_and_runs_one_at_a_time(connection: psycopg.Connection):
    jobs = await_end(connection, "replace")

    assert "skipped" not in schedules.outcomes(connection, "replace")
    assert run_states(connection, "replace") == [*["canceled"] * (len(jobs) - 1), "succeeded"]
    assert len(jobs) >= 3
    assert together(connection, "replace") == 1
    errors = {job["last_error"] for job in jobs[:-1]}
    assert errors == {"replaced by a newer slot of its schedule"}


@pytest.mark.usefixtures("story")
def test_a_run_that_takes_too_long_is_closed_and_slots_go_on(connection: psycopg.Connection):
    jobs = await_end(connection, "overdue")

    assert len(jobs) >= 2
    assert set(run_states(connection, "overdue")) == {"timed_out"}
    assert {job["state"] for job in jobs} == {"canceled"}
    assert all("longer than the 00:00:01 its schedule allows" in job["last_error"] for job in jobs)
    assert schedules.schedule(connection, "overdue")["retry_count"] == 0


@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize(
    ("overlap", "outcome", "expected"),
    [
        ("skip", "skipped", ["running"]),
        ("queue", "enqueued", ["running", "queued"]),
        ("replace", "enqueued", ["canceled", "running"]),
    ],
)
def test_a_trigger_by_hand_respects_the_overlap(
    connection: psycopg.Connection, overlap: str, outcome: str, expected: list[str]
):
    name = f"by hand {overlap}"
    schedules.insert_schedule(connection, name, overlap=overlap, **{**ENDLESS, "every": "1 day"})
    trigger(connection, name)
    wait_until(lambda: states(connection, name) == ["running"])

    assert trigger(connection, name)["outcome"] == outcome

    wait_until(lambda: states(connection, name) == expected)
    connection.execute("select mainspring.cancel(job_id) from mainspring.jobs")


def trigger(connection: psycopg.Connection, name: str) -> Any:
    ((answer,),) = connection.execute(
        "select mainspring.trigger_scheduled_job(%s)", (name,)
    ).fetchall()
    return answer


@pytest.mark.usefixtures("scheduler")
def test_jobs_that_wait_for_their_turn_outlive_their_schedule(connection: psycopg.Connection):
    long = {**LONG, "payload": {"seconds": 0.3}, "every": "1 day"}
    schedules.insert_schedule(connection, "gone", overlap="queue", **long)
    job_ids = [trigger(connection, "gone")["job_id"] for _ in range(3)]

    connection.execute("delete from mainspring.schedules where name = 'gone'")

    query = "select count(*) from mainspring.jobs_history where job_id = any (%s)"
    wait_until(lambda: connection.execute(query, (job_ids,)).fetchone() == (3,))


@pytest.mark.usefixtures("scheduler")
def test_jobs_that_wait_for_their_turn_run_when_more_may_run(connection: psycopg.Connection):
    endless = {**ENDLESS, "every": "1 day"}
    schedules.insert_schedule(connection, "more", overlap="queue", **endless)
    for _ in range(3):
        trigger(connection, "more")
    wait_until(lambda: states(connection, "more") == ["running", "queued", "queued"])

    connection.execute("update mainspring.schedules set max_running = 2 where name = 'more'")

    wait_until(lambda: states(connection, "more") == ["running", "running", "queued"])
    connection.execute("select mainspring.cancel(job_id) from mainspring.jobs")


def states(connection: psycopg.Connection, name: str) -> list[str]:
    return [job["state"] for job in schedules.jobs(connection, name)]
