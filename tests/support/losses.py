"""Jobs that a worker claims and loses, one statement at a time."""

from datetime import timedelta
from typing import Any

from mainspring.domain.types import WorkerId
from mainspring.store import attempts, recovery, workers
from mainspring.store.attempts import ClaimedRow, Report
from mainspring.store.recovery import LostJob
from tests.support.queue_driver import QueueDriver

MAX_LOSSES = 3
NO_JITTER = timedelta(0)


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
