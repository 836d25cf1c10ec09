"""A job that takes its process down is parked; those that were near it are not, nor is one whose
workers are killed from outside."""

import asyncio
from functools import partial
from itertools import chain

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.support import apps, reading
from tests.support.processes import StartWorker, WorkerProcess, is_running
from tests.support.waiting import wait_until
from tests.support.workers import ended, working


def suspect(connection: psycopg.Connection, losses: int = 0) -> None:
    """Every job that is there has lost a worker."""
    connection.execute("update mainspring.jobs set suspected_at = now(), losses = %s", (losses,))


def is_quiet(connection: psycopg.Connection) -> bool:
    return not reading.states(connection).keys() & {"queued", "running"}


# The death of a worker


def test_a_job_survives_more_kills_of_its_workers_than_it_may_have_losses(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    kills = 3
    workers = [start_worker(max_losses=kills - 2) for _ in range(kills + 1)]
    by_id = {worker.started(connection): worker for worker in workers}
    job_id = apps.hang_for.enqueue(attempts=kills).id

    for attempt in range(1, kills + 1):
        wait_until(partial(has_begun, connection, attempt), 30, f"attempt {attempt} begins")
        by_id[worker_of(connection, job_id)].kill()

    wait_until(partial(is_quiet, connection), 30)
    job = reading.job(connection, job_id)
    assert (job["state"], job["losses"], job["failures"]) == ("succeeded", 0, 0)
    assert reading.statuses(connection, job_id) == ["lost"] * kills + ["succeeded"]


def has_begun(connection: psycopg.Connection, attempt: int) -> bool:
    return attempt in {row["attempt"] for row in reading.notes(connection, "began")}


def worker_of(connection: psycopg.Connection, job_id: int) -> int:
    row = connection.execute(
        "select worker_id from mainspring.jobs where job_id = %s", (job_id,)
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_the_process_of_a_suspect_ends_with_its_worker(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    apps.hang_for.enqueue(attempts=9)
    suspect(connection)
    worker = start_worker()
    wait_until(partial(has_begun, connection, 1), 30)
    (began,) = reading.notes(connection, "began")
    assert began["pid"] != worker.pid

    worker.kill()

    wait_until(lambda: not is_running(began["pid"]), 10, "the process ends")


# The death of the job's own process


@pytest.mark.parametrize("poison", [apps.crash, apps.crash_in_thread], ids=["async", "thread"])
def test_a_job_that_crashes_is_parked_and_takes_down_one_worker_only(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker, poison
):
    job_id = poison.enqueue().id
    first = start_worker(max_losses=2)
    wait_until(lambda: not first.is_alive, 30, "the first worker dies")
    neighbours = shared_app.enqueue_many(apps.take_a_while, [{"seconds": 1}] * 5)

    second = start_worker(max_losses=2)

    wait_until(partial(is_over, connection, second), 30, "all jobs end")
    assert second.is_alive, second.log
    assert reading.states(connection) == {"dead_letter": 1, "succeeded": len(neighbours)}
    assert all(reading.statuses(connection, each) == ["succeeded"] for each in neighbours)
    job = reading.job(connection, job_id)
    assert (job["losses"], job["failures"]) == (2, 0)
    assert reading.statuses(connection, job_id) == ["lost", "lost", "lost"]
    assert job["last_error"] == "the job's process was killed by SIGSEGV (death 2 of 2)"


def is_over(connection: psycopg.Connection, worker: WorkerProcess) -> bool:
    return not worker.is_alive or is_quiet(connection)


def test_the_exit_of_a_process_is_its_death_too(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    job_id = apps.leave_the_process.enqueue().id
    suspect(connection)

    start_worker(max_losses=1)

    wait_until(partial(is_quiet, connection), 30)
    job = reading.job(connection, job_id)
    assert (job["state"], job["losses"]) == ("dead_letter", 1)
    assert job["last_error"] == "the job's process exited with code 3 (death 1 of 1)"


# What suspects can do


def test_suspects_run_side_by_side_and_nobody_waits_for_them(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    shared_app.enqueue_many(apps.hang_for, [{"attempts": 9}] * 10)
    suspect(connection)
    start_worker(concurrency=6)
    wait_until(lambda: len(reading.notes(connection, "began")) == 6, 30, "six run at a time")
    assert len({row["pid"] for row in reading.notes(connection, "began")}) == 6

    fresh = apps.do_nothing.enqueue(number=1)

    wait_until(lambda: reading.state(connection, fresh.id) == "succeeded", 10)


@pytest.mark.parametrize(
    "job", [apps.use_the_context, apps.use_the_context_in_thread], ids=["async", "thread"]
)
def test_a_suspect_has_its_context(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker, job
):
    job_id = job.enqueue().id
    suspect(connection)

    worker = start_worker()

    wait_until(partial(is_quiet, connection), 30)
    ended = reading.job(connection, job_id)
    assert (ended["state"], ended["failures"]) == ("succeeded", 1), ended["last_error"]
    assert worker.pid not in (ended["result"]["pid"], ended["result"]["saved"]["pid"])
    assert connection.execute("select job_id from effects").fetchall() == [(job_id,)]
    assert reading.states(connection) == {"succeeded": 2}, "and its follow-up"


def test_a_suspect_that_is_canceled_can_clean_up(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    job_id = apps.hang_at_first.enqueue().id
    suspect(connection)
    start_worker(cancel_grace_seconds=20)
    wait_until(partial(has_begun, connection, 1), 30)

    shared_app.jobs.cancel(job_id)

    wait_until(lambda: reading.state(connection, job_id) == "canceled", 10)
    assert reading.notes(connection, "canceled"), "its handler was asked, and not killed"


async def test_a_suspect_whose_handler_cannot_be_imported_runs_alone_in_its_worker(
    app: Mainspring, connection: psycopg.Connection
):
    running: set[int] = set()

    @app.job
    async def work(ctx: Context) -> list[int]:
        """What ran beside it."""
        running.add(ctx.job_id)
        await asyncio.sleep(0.02)
        beside = running - {ctx.job_id}
        running.remove(ctx.job_id)
        return [*beside]

    suspects = [await work.aenqueue() for _ in range(3)]
    suspect(connection)
    others = [await work.aenqueue() for _ in range(20)]

    async with working(app):
        assert [(await ended(each)).result for each in suspects] == [[], [], []]
        together = [(await ended(each)).result for each in others]

    assert any(together), "the others ran side by side"
    assert not {each.id for each in suspects} & set(chain.from_iterable(together))


async def test_the_worker_says_which_suspect_runs_alone(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def is_marked(ctx: Context) -> bool:
        query = "select alone_fence = fence from mainspring.jobs where job_id = %s"
        return connection.execute(query, (ctx.job_id,)).fetchall() == [(True,)]

    handle = await is_marked.aenqueue()
    suspect(connection)

    async with working(app):
        assert (await ended(handle)).result is True
        fresh = await ended(await is_marked.aenqueue())

    assert fresh.result is False
