"""Recovery: what a dead worker held comes back as a suspect. The death of a worker is a loss only
to a job that ran alone in it."""

from datetime import timedelta

import pytest

from mainspring.domain.types import DEFAULT_TENANT, AttemptStatus, JobState, WorkerId
from mainspring.store import attempts, flows, jobs, workers
from mainspring.store.attempts import ClaimedRow, Ending, Report, Return, Successes
from mainspring.store.recovery import LostJob
from tests.support.losses import MAX_LOSSES, NO_JITTER, claim, lose, recover
from tests.support.queue_driver import QueueDriver

JOB = "select state, waits_for, attempt, losses, fence, worker_id from mainspring.jobs"
HISTORY = "select state, attempt, losses, last_error from mainspring.jobs_history"
ATTEMPTS = "select number, status, worker_id from mainspring.attempts order by number"


@pytest.fixture
def queue(driver: QueueDriver) -> QueueDriver:
    driver.clean()
    driver.call(jobs.enqueue("build", "{}"))
    return driver


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
        (False, "stopped renewing its lease: its process or host is down, or it hangs"),
    ],
)
def test_a_lost_attempt_says_what_became_of_its_worker(queue, are_dead, said):
    worker_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id], are_dead=are_dead))
    recover(queue)

    ((error,),) = queue.execute("select error from mainspring.attempts")
    assert error.startswith(f"worker {worker_id} (pid ")
    assert error.endswith(said)


def test_a_lost_attempt_names_a_remote_worker(queue):
    worker_id, _ = claim(queue)
    queue.execute("update mainspring.workers set process_identity = 'api:*:ann', name = 'c1'")
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    recover(queue)

    ((error,),) = queue.execute("select error from mainspring.attempts")
    assert error.startswith(f"remote worker c1 (worker {worker_id}) stopped renewing its lease")


# At most once


@pytest.fixture
def once(queue: QueueDriver) -> QueueDriver:
    """Its one job runs at most once."""
    queue.execute("update mainspring.jobs set delivery = 'at_most_once', max_attempts = 1")
    return queue


def begin(queue: QueueDriver, row: ClaimedRow) -> None:
    assert queue.run(attempts.mark_begun(queue.connection, [row.report])) == 1


def test_a_job_that_has_begun_and_runs_at_most_once_ends(once):
    worker_id, row = claim(once)
    begin(once, row)
    once.run(workers.expire_workers(once.connection, [worker_id], are_dead=True))

    assert recover(once) == [LostJob(row.job_id, worker_id, is_parked=False, is_ended=True)]

    ((state, attempt, losses, error),) = once.execute(HISTORY)
    assert (state, attempt, losses) == ("dead_letter", 1, 0)
    assert error.startswith("lost, and not run again because it runs at most once: worker ")
    assert once.execute(ATTEMPTS) == [(1, "lost", worker_id)]
    assert once.execute("select state, sum(count) from mainspring.tally_status group by 1") == [
        ("dead_letter", 1)
    ]


def test_a_job_that_has_not_begun_is_as_if_it_had_not_been_claimed(once):
    worker_id, row = claim(once)
    once.run(workers.expire_workers(once.connection, [worker_id]))

    assert recover(once) == [LostJob(row.job_id, worker_id, is_parked=False, is_ended=False)]

    assert once.execute(JOB) == [("queued", "time", 0, 0, None, None)]
    assert once.execute(ATTEMPTS) == []
    assert once.execute("select suspected_at from mainspring.jobs") == [(None,)]


def test_nobody_knows_what_a_worker_of_an_earlier_release_has_begun(once):
    worker_id, row = claim(once)
    once.execute("update mainspring.workers set records_starts = false")
    once.run(workers.expire_workers(once.connection, [worker_id]))

    assert recover(once) == [LostJob(row.job_id, worker_id, is_parked=False, is_ended=True)]


def test_nobody_knows_what_a_worker_without_a_row_has_begun(once):
    worker_id, _ = claim(once)
    once.execute("delete from mainspring.workers")

    recover(once)

    assert [row[0] for row in once.execute(HISTORY)] == ["dead_letter"]
    assert once.execute(ATTEMPTS) == [(1, "lost", worker_id)]


def test_a_mark_of_an_earlier_lease_does_not_count(once):
    _, row = claim(once)
    begin(once, row)
    snooze = Return(
        *row.report, 0, 0, status=AttemptStatus.SNOOZED, error=None, failed=0, delay=NO_JITTER
    )
    assert once.run(attempts.finish_requeued(once.connection, row_worker(once), [snooze])) == (
        [],
        [],
    )
    worker_id, _ = claim(once)
    once.run(workers.expire_workers(once.connection, [worker_id]))
    recover(once)

    assert once.execute(JOB)[0][:3] == ("queued", "time", 1)


def row_worker(queue: QueueDriver) -> WorkerId:
    ((worker_id,),) = queue.execute("select worker_id from mainspring.jobs")
    return WorkerId(worker_id)


def test_what_a_worker_leaves_behind_ends_if_it_has_begun(once):
    worker_id, row = claim(once)
    begin(once, row)

    once.run(attempts.hand_back(once.connection, [row.report]))

    ((state, _, _, error),) = once.execute(HISTORY)
    assert state == "dead_letter"
    assert error.endswith(f"worker {worker_id} left before the job was done")
    assert once.execute(ATTEMPTS) == [(1, "lost", worker_id)]


def test_no_report_puts_a_job_back_that_has_had_its_run(once):
    worker_id, row = claim(once)
    begin(once, row)
    again = Return(
        *row.report, 0, 0, status=AttemptStatus.FAILED, error="no", failed=1, delay=NO_JITTER
    )

    refused = once.run(attempts.finish_requeued(once.connection, worker_id, [again])).refused

    assert refused == [row.report]
    assert once.execute(JOB)[0][0] == "running"


def test_a_job_whose_function_has_committed_is_put_back_to_say_so(once):
    worker_id, row = claim(once)
    begin(once, row)
    once.execute(
        "insert into mainspring.receipts (job_id, fence, result)"
        " select job_id, fence, '1' from mainspring.jobs"
    )
    once.run(workers.expire_workers(once.connection, [worker_id]))

    recover(once)

    assert once.execute(JOB)[0][:3] == ("queued", "time", 1)
    once.execute("delete from mainspring.receipts")


def test_a_child_of_a_lost_job_is_not_left_waiting(once):
    ((parent,),) = once.execute("select job_id from mainspring.jobs")
    child = "select job_id from mainspring.enqueue_job('build', after => array[%(parent)s::bigint])"
    once.execute(child, {"parent": parent})
    worker_id, row = claim(once)
    begin(once, row)
    once.run(workers.expire_workers(once.connection, [worker_id]))
    recover(once)

    found = once.run(flows.settle(once.connection, [row.job_id]))

    assert found is not None
    assert {row[0] for row in once.execute(HISTORY)} == {"dead_letter", "canceled"}


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

    assert queue.run(attempts.record_late_reports(queue.connection, late)) == ([], {report})
    recover(queue)
    assert queue.run(attempts.record_late_reports(queue.connection, late)) == (
        [report.job_id],
        set(),
    )


def test_a_report_repeated_after_its_answer_was_lost_is_not_late(queue):
    worker_id, row = claim(queue)
    report = Report(row.job_id, row.fence)
    successes = Successes([row.job_id], [row.fence], [0], [0], [None])
    queue.run(attempts.finish_succeeded(queue.connection, worker_id, successes))

    late = [(report, AttemptStatus.SUCCEEDED)]

    assert queue.run(attempts.record_late_reports(queue.connection, late)) == ([], set())
