"""Recovery: what a dead worker held comes back as a suspect. The death of a worker is a loss only
to a job that ran alone in it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from mainspring.domain.types import DEFAULT_TENANT, AttemptStatus, JobState, WorkerId
from mainspring.store import attempts, jobs, recovery, workers
from mainspring.store.attempts import ClaimedRow, Ending, Report, Return, Successes
from mainspring.store.recovery import LostJob
from tests.support.queue_driver import QueueDriver

MAX_LOSSES = 3
NO_JITTER = timedelta(0)
JOB = "select state, waits_for, attempt, losses, fence, worker_id from mainspring.jobs"
HISTORY = "select state, attempt, losses, last_error from mainspring.jobs_history"
ATTEMPTS = "select number, status, worker_id from mainspring.attempts order by number"


@pytest.fixture(scope="module")
def driver(module_url: str) -> Iterator[QueueDriver]:
    driver = QueueDriver(module_url)
    yield driver
    driver.close()


@pytest.fixture
def queue(driver: QueueDriver) -> QueueDriver:
    driver.clean()
    driver.call(jobs.enqueue("build", "{}"))
    return driver


def claim(queue: QueueDriver) -> tuple[WorkerId, ClaimedRow]:
    """A new worker and the job it got."""
    worker_id = queue.register()
    (row,) = queue.claim(worker_id, 1)
    return worker_id, row


def recover(queue: QueueDriver, jitter: timedelta = NO_JITTER) -> list[LostJob]:
    """One pass of the duty: orphans are adopted, jobs taken back, workers done with."""
    queue.statement("recovery", "adopt_orphans")
    terms: dict[str, Any] = {"max_losses": MAX_LOSSES, "jitter": jitter}
    lost = queue.run(recovery.recover(queue.connection, **terms))
    queue.run(workers.note_recovered(queue.connection))
    return lost


def lose(queue: QueueDriver, *, is_alone: bool) -> None:
    """The job is claimed, its worker dies, and it is ready again if it is not parked."""
    worker_id, row = claim(queue)
    if is_alone:
        assert queue.run(attempts.mark_alone(queue.connection, Report(row.job_id, row.fence)))
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    assert len(recover(queue)) == 1
    queue.statement("waits", "promote", now=None, limit=10)


def losses(queue: QueueDriver) -> int:
    ((count,),) = queue.execute("select losses from mainspring.jobs")
    return int(count)


def test_a_job_of_a_living_worker_is_left_alone(queue):
    claim(queue)

    assert recover(queue) == []


def test_a_lost_job_waits_a_moment_and_keeps_its_attempt(queue):
    worker_id, row = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))

    assert recover(queue) == [LostJob(row.job_id, worker_id, is_parked=False)]

    assert queue.execute(JOB) == [("queued", "time", 1, 0, None, None)]
    assert queue.execute(ATTEMPTS) == [(1, "lost", worker_id)]


@pytest.mark.parametrize(
    ("are_dead", "said"),
    [
        (True, "died: its process was killed or crashed"),
        (False, "stopped renewing its lease: its host is down, or it hangs"),
    ],
)
def test_a_lost_attempt_says_what_became_of_its_worker(queue, are_dead, said):
    worker_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id], are_dead=are_dead))
    recover(queue)

    ((error,),) = queue.execute("select error from mainspring.attempts")
    assert error.startswith(f"worker {worker_id} (pid ")
    assert error.endswith(said)


def test_lost_jobs_come_back_spread_over_the_jitter(queue):
    for _ in range(29):
        queue.call(jobs.enqueue("build", "{}"))
    worker_id = queue.register()
    queue.claim(worker_id, 30)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))

    recover(queue, timedelta(hours=1))

    rows = queue.execute("select extract(epoch from scheduled_for - now()) from mainspring.jobs")
    waits = [float(seconds) for (seconds,) in rows]
    assert max(waits) <= 3600
    assert max(waits) - min(waits) > 600


def test_the_death_of_a_worker_makes_a_suspect_and_no_loss(queue):
    _, row = claim(queue)
    assert not row.is_suspect
    queue.run(attempts.hand_back(queue.connection, [row.report]))

    for _ in range(MAX_LOSSES + 2):
        lose(queue, is_alone=False)

    assert losses(queue) == 0
    _, row = claim(queue)
    assert row.is_suspect


def test_it_is_a_loss_to_a_job_that_ran_alone(queue):
    lose(queue, is_alone=True)
    lose(queue, is_alone=False)
    assert losses(queue) == 1

    lose(queue, is_alone=True)
    assert losses(queue) == 2


def test_a_job_that_took_its_worker_down_too_often_is_parked(queue):
    for _ in range(MAX_LOSSES):
        lose(queue, is_alone=True)

    assert queue.execute("select from mainspring.jobs") == []
    ((state, attempt, count, error),) = queue.execute(HISTORY)
    assert (state, attempt, count) == ("dead_letter", 3, 3)
    assert error == "its worker died while it ran nothing else (death 3 of 3)"
    statuses = [status for _, status, _ in queue.execute(ATTEMPTS)]
    assert statuses == ["lost"] * 3


def test_a_parked_job_that_is_retried_starts_with_a_clean_record(queue):
    for _ in range(MAX_LOSSES):
        lose(queue, is_alone=True)
    ((job_id,),) = queue.execute("select job_id from mainspring.jobs_history")
    queue.call(jobs.retry(DEFAULT_TENANT, job_id))

    assert losses(queue) == 0
    _, row = claim(queue)
    assert not row.is_suspect


def returned(row: ClaimedRow, *, lost: int) -> Return:
    status = AttemptStatus.LOST if lost else AttemptStatus.FAILED
    return Return(
        row.job_id, row.fence, 0, 0, status, "broke", failed=0, delay=timedelta(0), lost=lost
    )


@pytest.mark.parametrize(("lost", "is_suspect"), [(0, False), (1, True)])
def test_a_job_that_lost_its_own_process_is_a_suspect(queue, lost: int, is_suspect: bool):
    worker_id, row = claim(queue)

    queue.run(attempts.finish_requeued(queue.connection, worker_id, [returned(row, lost=lost)]))

    assert losses(queue) == lost
    _, row = claim(queue)
    assert (row.losses, row.is_suspect) == (lost, is_suspect)


def test_a_suspect_that_fails_is_still_one(queue):
    lose(queue, is_alone=False)
    worker_id, row = claim(queue)

    queue.run(attempts.finish_requeued(queue.connection, worker_id, [returned(row, lost=0)]))

    _, row = claim(queue)
    assert row.is_suspect


def test_a_job_parked_for_its_own_process_keeps_the_count(queue):
    worker_id, row = claim(queue)
    dead = (JobState.DEAD_LETTER, AttemptStatus.LOST)
    ending = Ending(row.job_id, row.fence, 0, 0, *dead, "its process died", failed=0, lost=1)

    queue.run(attempts.finish_ended(queue.connection, worker_id, [ending]))

    assert queue.execute(HISTORY) == [("dead_letter", 1, 1, "its process died")]


def test_a_job_whose_worker_has_no_row_comes_back(queue):
    worker_id, row = claim(queue)
    queue.run(workers.remove(queue.connection, worker_id))

    assert recover(queue) == [LostJob(row.job_id, worker_id, is_parked=False)]


def test_a_job_claimed_just_before_its_worker_was_done_with_comes_back(queue):
    worker_id, row = claim(queue)
    queue.execute("update mainspring.workers set expires_at = now(), recovered_at = now()")

    assert recover(queue) == [LostJob(row.job_id, worker_id, is_parked=False)]


def test_a_worker_is_done_with_when_all_it_held_is_taken_back(queue):
    worker_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    done = "select recovered_at is not null from mainspring.workers"

    queue.run(workers.note_recovered(queue.connection))
    assert queue.execute(done) == [(False,)]
    recover(queue)
    assert queue.execute(done) == [(True,)]


def test_a_late_report_is_unsettled_until_the_job_was_taken_back(queue):
    worker_id, row = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    report = Report(row.job_id, row.fence)
    late = [(report, AttemptStatus.SUCCEEDED)]

    assert queue.run(attempts.record_late_reports(queue.connection, late)) == (0, {report})
    recover(queue)
    assert queue.run(attempts.record_late_reports(queue.connection, late)) == (1, set())


def test_a_report_repeated_after_its_answer_was_lost_is_not_late(queue):
    worker_id, row = claim(queue)
    report = Report(row.job_id, row.fence)
    successes = Successes([row.job_id], [row.fence], [0], [0], [None])
    queue.run(attempts.finish_succeeded(queue.connection, worker_id, successes))

    late = [(report, AttemptStatus.SUCCEEDED)]

    assert queue.run(attempts.record_late_reports(queue.connection, late)) == (0, set())
