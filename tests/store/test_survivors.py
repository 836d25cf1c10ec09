"""A worker that loses its lease and lives, as in an outage: what it ran has not killed it."""

import pytest

from mainspring.domain.types import AttemptStatus, WorkerId
from mainspring.store import attempts, jobs, recovery, workers
from mainspring.store.attempts import Report
from tests.support.losses import claim, lose, recover
from tests.support.queue_driver import QueueDriver

ATTEMPTS = "select number, status, worker_id from mainspring.attempts order by number"
SUSPECT = "select suspected_at is not null, losses from mainspring.jobs"


@pytest.fixture
def queue(driver: QueueDriver) -> QueueDriver:
    driver.clean()
    driver.call(jobs.enqueue("build", "{}"))
    return driver


def outlive(queue: QueueDriver, worker_id: WorkerId) -> None:
    queue.run(recovery.note_survivor(queue.connection, worker_id))


@pytest.mark.parametrize("is_alone", [False, True])
@pytest.mark.parametrize("is_first", [False, True], ids=["afterwards", "before"])
def test_what_is_taken_back_from_a_worker_that_survived_is_no_suspect(
    queue, is_alone: bool, is_first: bool
):
    worker_id, row = claim(queue)
    if is_alone:
        queue.run(attempts.mark_alone(queue.connection, Report(row.job_id, row.fence)))
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    steps = [lambda: recover(queue), lambda: outlive(queue, worker_id)]
    for step in reversed(steps) if is_first else steps:
        step()

    assert queue.execute(SUSPECT) == [(False, 0)]
    assert queue.execute(ATTEMPTS) == [(1, AttemptStatus.LOST, worker_id)]


def test_a_survivor_clears_nobody_of_what_happened_to_others(queue):
    lose(queue, is_alone=True)
    worker_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    recover(queue)
    outlive(queue, worker_id)

    assert queue.execute(SUSPECT) == [(True, 1)]


def test_a_job_that_was_claimed_again_is_left_as_it_is(queue):
    lost_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [lost_id]))
    recover(queue)
    queue.statement("waits", "promote", now=None, limit=10)
    claim(queue)
    outlive(queue, lost_id)

    assert queue.execute(SUSPECT) == [(True, 0)]


def test_a_lost_attempt_says_that_its_worker_survived(queue):
    worker_id, _ = claim(queue)
    queue.run(workers.expire_workers(queue.connection, [worker_id]))
    outlive(queue, worker_id)
    recover(queue)

    ((error,),) = queue.execute("select error from mainspring.attempts")
    assert "could not reach the database in time to renew its lease" in error
