"""Finishing: one statement moves the job to history, or back to queued, with its attempt row."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from mainspring.domain.jobs.error_keys import LOST_WORKER, summarize
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import AttemptStatus, JobState, WorkerId
from mainspring.store import attempts, jobs, recovery
from mainspring.store.attempts import ClaimedRow, Ending, Report, Return, Successes
from tests.support.queue_driver import QueueDriver

WAITED, RAN = 1_500_000, 2_000_000
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def queue(driver: QueueDriver) -> QueueDriver:
    driver.clean()
    return driver


@pytest.fixture
def held(queue: QueueDriver) -> tuple[WorkerId, ClaimedRow]:
    """A worker and the one job it has claimed."""
    queue.call(jobs.enqueue("build", '{"n": 1}'))
    worker_id = queue.register()
    (row,) = queue.claim(worker_id, 10)
    return worker_id, row


def rows(queue: QueueDriver, view: str) -> list[dict[str, Any]]:
    async def fetch() -> list[dict[str, Any]]:
        async with queue.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(f"select * from mainspring.{view}")
            return await cursor.fetchall()

    return queue.run(fetch())


def started_at(queue: QueueDriver) -> Any:
    return queue.execute("select started_at from mainspring.jobs")[0][0]


def succeed(
    queue: QueueDriver, held: tuple[WorkerId, ClaimedRow], result: bytes | None
) -> list[Report]:
    worker_id, row = held
    reports = Successes([row.job_id], [row.fence], [WAITED], [RAN], [result])
    return queue.run(attempts.finish_succeeded(queue.connection, worker_id, reports)).refused


def test_a_claim_gives_what_a_worker_needs(held):
    _, row = held

    assert (row.definition, row.payload, row.attempt) == ("build", '{"n": 1}', 1)
    assert (row.failures, row.losses, row.max_attempts) == (0, 0, 3)
    assert (row.queue, row.priority, row.tenant_id) == ("a", 100, "default")


@pytest.mark.parametrize(("result", "stored"), [(b'{"a": [1]}', {"a": [1]}), (None, None)])
def test_a_success_moves_the_job_with_its_result(queue, held, result, stored):
    claimed_at = started_at(queue)

    assert succeed(queue, held, result) == []

    (job,) = rows(queue, "jobs_history")
    assert (job["state"], job["result"], job["payload"]) == ("succeeded", stored, {"n": 1})
    assert job["started_at"] == claimed_at + WAITED * MICROSECOND
    assert (job["fence"], job["worker_id"]) == (None, None)
    assert rows(queue, "jobs") == []


def test_a_success_has_its_attempt(queue, held):
    worker_id, row = held
    claimed_at = started_at(queue)

    succeed(queue, held, None)

    (attempt,) = rows(queue, "attempts")
    assert (attempt["job_id"], attempt["fence"]) == (row.job_id, row.fence)
    assert (attempt["worker_id"], attempt["number"]) == (worker_id, 1)
    assert (attempt["status"], attempt["error"]) == ("succeeded", None)
    assert attempt["started_at"] == claimed_at + WAITED * MICROSECOND
    assert attempt["finished_at"] == attempt["started_at"] + RAN * MICROSECOND


def took(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["started_at"], row["finished_at"]


def test_a_job_took_as_long_as_its_attempt(queue, held):
    succeed(queue, held, None)

    (job,), (attempt,) = rows(queue, "jobs_history"), rows(queue, "attempts")
    assert took(job) == took(attempt)


def test_a_job_is_counted_on_the_day_on_which_it_ended(queue, held):
    queue.execute("update mainspring.jobs set started_at = started_at - interval '3 days'")

    succeed(queue, held, None)

    ((day,),) = queue.execute("select mainspring.day_of(finished_at) from mainspring.jobs_history")
    assert day in {change["day"] for change in rows(queue, "changes")}


@pytest.mark.parametrize(
    ("state", "status", "failed"),
    [
        (JobState.FAILED, AttemptStatus.FAILED, 1),
        (JobState.DEAD_LETTER, AttemptStatus.TIMEOUT, 1),
        (JobState.CANCELED, AttemptStatus.CANCELED, 0),
    ],
)
def test_an_end_without_success_moves_the_job_with_its_error(queue, held, state, status, failed):
    worker_id, row = held
    terms: dict[str, Any] = {
        "state": state,
        "status": status,
        "error": "it broke",
        "failed": failed,
    }
    report = Ending(row.job_id, row.fence, WAITED, RAN, **terms)

    queue.run(attempts.finish_ended(queue.connection, worker_id, [report]))

    (job,), (attempt,) = rows(queue, "jobs_history"), rows(queue, "attempts")
    assert (job["state"], job["last_error"], job["failures"]) == (state, "it broke", failed)
    assert (attempt["status"], attempt["error"], attempt["number"]) == (status, "it broke", 1)
    assert took(job) == took(attempt)
    assert rows(queue, "jobs") == []


@pytest.mark.parametrize(
    ("delay", "waits_for"), [(timedelta(0), None), (timedelta(seconds=5), "time")]
)
def test_a_return_keeps_the_job_live_and_its_attempt(queue, held, delay, waits_for):
    worker_id, row = held
    terms: dict[str, Any] = {
        "status": AttemptStatus.FAILED,
        "error": "it broke",
        "failed": 1,
        "delay": delay,
    }
    report = Return(row.job_id, row.fence, WAITED, RAN, **terms)

    queue.run(attempts.finish_requeued(queue.connection, worker_id, [report]))

    (job,), (attempt,) = rows(queue, "jobs"), rows(queue, "attempts")
    assert (job["state"], job["waits_for"], job["failures"]) == ("queued", waits_for, 1)
    assert (job["attempt"], job["last_error"], job["started_at"]) == (1, "it broke", None)
    assert (attempt["status"], attempt["number"]) == ("failed", 1)
    assert rows(queue, "jobs_history") == []


def test_a_return_without_an_error_keeps_the_last_one(queue, held):
    worker_id, row = held
    queue.execute("update mainspring.jobs set last_error = 'the last time'")
    terms: dict[str, Any] = {
        "status": AttemptStatus.SNOOZED,
        "error": None,
        "failed": 0,
        "delay": timedelta(0),
    }
    report = Return(row.job_id, row.fence, WAITED, RAN, **terms)

    queue.run(attempts.finish_requeued(queue.connection, worker_id, [report]))

    assert rows(queue, "jobs")[0]["last_error"] == "the last time"


@pytest.mark.parametrize(
    ("delay", "failed", "lost", "error", "limit_name", "is_suspect"),
    [
        (timedelta(0), 1, 0, "it broke", None, False),
        (timedelta(0), 1, 0, "it broke", "slow", True),
        (timedelta(0), 0, 1, "it died", None, False),
        (timedelta(microseconds=1), 1, 0, "it broke", None, True),
        (timedelta(days=40), 0, 0, None, "slow", False),
        (timedelta(days=40), 0, 1, None, None, True),
    ],
)
def test_a_return_changes_what_requeue_jobs_would(
    queue, held, delay, failed, lost, error, limit_name, is_suspect
):
    worker_id, row = held
    queue.execute(
        "update mainspring.jobs set limit_name = %s, limit_key = %s, progress = '1', losses = 1,"
        " last_error = 'the last time',"
        " suspected_at = case when %s then now() - interval '1 day' end",
        (limit_name, limit_name and "key", is_suspect),
    )
    report = Return(
        row.job_id,
        row.fence,
        WAITED,
        RAN,
        status=AttemptStatus.FAILED,
        error=error,
        failed=failed,
        delay=delay,
        lost=lost,
    )
    queue.execute("begin")
    queue.execute("savepoint claimed")
    queue.run(attempts.finish_requeued(queue.connection, worker_id, [report]))
    (fast,) = rows(queue, "jobs")
    queue.execute("rollback to claimed")
    queue.execute(
        "select mainspring.requeue_jobs(array[%s]::bigint[],"
        " array[case when %s > interval '0' then 'time'::mainspring.waits_for end],"
        " due_ats => array[now() + %s], failures => array[%s],"
        " losses => array[case when %s > 0 then 1 + %s end]::integer[],"
        " errors => array[%s]::text[])",
        (row.job_id, delay, delay, failed, lost, lost, error),
    )
    (slow,) = rows(queue, "jobs")
    queue.execute("rollback")

    assert fast == slow


@pytest.mark.parametrize(("seconds", "messages"), [(0, ["ready:a"]), (5, [])])
def test_a_return_wakes_idle_workers_if_the_job_is_ready(
    queue, held, module_url, seconds, messages
):
    worker_id, row = held
    terms: dict[str, Any] = {"status": AttemptStatus.FAILED, "error": "it broke", "failed": 1}
    report = Return(row.job_id, row.fence, WAITED, RAN, delay=timedelta(seconds=seconds), **terms)
    with psycopg.connect(module_url, autocommit=True) as listener:
        listener.execute("listen mainspring")

        queue.run(attempts.finish_requeued(queue.connection, worker_id, [report]))

        listener.execute("notify mainspring, 'end'")
        heard = [each.payload for each in listener.notifies(timeout=10, stop_after=1)]
        while heard[-1] != "end":
            heard += [each.payload for each in listener.notifies(timeout=10, stop_after=1)]
    assert heard == [*messages, "end"]


def test_many_finish_in_one_statement(queue):
    for number in range(20):
        queue.call(jobs.enqueue("build", f'{{"n": {number}}}'))
    worker_id = queue.register()
    claimed = queue.claim(worker_id, 20)
    reports = Successes(
        [row.job_id for row in claimed],
        [row.fence for row in claimed],
        [0] * 20,
        [0] * 20,
        [row.payload.encode() for row in claimed],
    )

    finished = queue.run(attempts.finish_succeeded(queue.connection, worker_id, reports))
    assert finished == ([], [])

    assert all(job["result"] == job["payload"] for job in rows(queue, "jobs_history"))
    assert len(rows(queue, "attempts")) == 20


# Errors


def failures(queue: QueueDriver) -> list[tuple[Any, ...]]:
    return queue.execute(
        "select tenant_id, queue, definition, sample, count, job_ids, tags, error_key"
        " from mainspring.failures order by count desc"
    )


@pytest.fixture
def seven(queue: QueueDriver) -> tuple[WorkerId, list[ClaimedRow]]:
    """A worker and seven jobs that it has claimed."""
    for number in range(7):
        options = EnqueueOptions(tags=("eu",) if number else ())
        queue.call(jobs.enqueue("build", f'{{"n": {number}}}', options))
    worker_id = queue.register()
    return worker_id, sorted(queue.claim(worker_id, 10))


def ending(row: ClaimedRow, error: str, status: AttemptStatus = AttemptStatus.FAILED) -> Ending:
    terms: dict[str, Any] = {"status": status, "error": error, "failed": 1}
    return Ending(row.job_id, row.fence, WAITED, RAN, state=JobState.FAILED, **terms)


def test_the_failures_of_a_batch_are_noted_once_for_each_error(queue, seven):
    worker_id, claimed = seven
    reports = [ending(row, f"ValueError: no {row.job_id}") for row in claimed[:6]]
    reports.append(ending(claimed[6], "KeyError: no"))

    queue.run(attempts.finish_ended(queue.connection, worker_id, reports))

    many, one = failures(queue)
    key = summarize("ValueError: no 1").key
    newest = [row.job_id for row in claimed[5:0:-1]]
    assert many[:3] == ("default", "a", "build")
    assert many[3].startswith("ValueError: no ")
    assert many[4:] == (6, newest, ["eu"], key)
    other = summarize("KeyError: no").key
    assert one[3:] == ("KeyError: no", 1, [claimed[6].job_id], ["eu"], other)
    counted = "select error_key, count(*) from mainspring.attempts group by 1 order by 2"
    assert queue.execute(counted) == [(other, 1), (key, 6)]


def test_only_failures_are_noted_and_only_those_that_are_accepted(queue, seven):
    worker_id, claimed = seven
    late = claimed[0]._replace(fence=claimed[0].fence - 1)
    canceled = ending(claimed[1], "stopped", AttemptStatus.CANCELED)
    terms: dict[str, Any] = {"failed": 0, "delay": timedelta(0)}
    snoozed = Return(
        claimed[2].job_id, claimed[2].fence, 1, 1, status=AttemptStatus.SNOOZED, error="x", **terms
    )
    again = Return(
        claimed[3].job_id, claimed[3].fence, 1, 1, status=AttemptStatus.TIMEOUT, error="y", **terms
    )

    queue.run(attempts.finish_ended(queue.connection, worker_id, [ending(late, "z"), canceled]))
    queue.run(attempts.finish_requeued(queue.connection, worker_id, [snoozed, again]))

    ((*_, sample, count, job_ids, _tags, _key),) = failures(queue)
    assert (sample, count, job_ids) == ("y", 1, [claimed[3].job_id])


def test_an_only_run_that_a_worker_leaves_is_noted(queue, seven):
    _, claimed = seven
    queue.execute("update mainspring.jobs set delivery = 'at_most_once', begun_fence = fence")

    queue.execute(f"select mainspring.end_spent_jobs(array[{claimed[1].job_id}], false)")

    ((*_, sample, count, job_ids, _tags, key),) = failures(queue)
    assert sample.endswith("left before the job was done")
    assert (count, job_ids, key) == (1, [claimed[1].job_id], summarize(LOST_WORKER).key)


def test_jobs_of_a_worker_that_is_gone_are_noted(queue, seven):
    worker_id, claimed = seven
    queue.execute("update mainspring.workers set expires_at = now() - interval '1 second'")

    queue.run(recovery.recover(queue.connection, max_losses=3, jitter=timedelta(0)))

    ((*_, sample, count, job_ids, tags, key),) = failures(queue)
    assert f"worker {worker_id}" in sample
    assert (count, tags, key) == (7, ["eu"], summarize(LOST_WORKER).key)
    assert job_ids == [row.job_id for row in claimed[:1:-1]]
    assert queue.execute("select distinct error_key from mainspring.attempts") == [(key,)]
