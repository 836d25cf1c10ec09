"""The queue under random use: after every step the tables are what a small model says.

Hypothesis strings together enqueues, claims, reports (current and stale), dead workers, time
passing, cancels, retries and deletes. `tests/support/queue_model.py` says what must come of
it; `tests/support/queue_promises.py` what must hold whatever the model says.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from psycopg import AsyncConnection

from mainspring.domain.types import AttemptStatus, Fence, JobId, JobState, WaitsFor, WorkerId
from mainspring.store import attempts, recovery, workers
from mainspring.store.attempts import ClaimedRow, Ending, Finished, Report, Return, Successes
from tests.support.queue_driver import LEASE, QueueDriver
from tests.support.queue_model import NOW, Lease, ModelJob
from tests.support.queue_rules import DAY, CallerRules, Machine, OperatorRules, TimeRules

MOST_WORKERS = 3
ENDINGS = {
    JobState.FAILED: AttemptStatus.FAILED,
    JobState.DEAD_LETTER: AttemptStatus.TIMEOUT,
    JobState.CANCELED: AttemptStatus.CANCELED,
}
QUICK = settings(
    max_examples=50,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
SOAK = settings(QUICK, max_examples=1000, stateful_step_count=80, derandomize=False)


class WorkerRules(Machine):
    """Leases of workers: claims, and what happens when one runs out."""

    def __init__(self, queue: QueueDriver) -> None:
        super().__init__(queue)
        self.newest_fence = 0
        self.register()

    @rule()
    @precondition(lambda self: len(self.alive()) < MOST_WORKERS)
    def register(self):
        self.model.is_alive[self.queue.register()] = True

    @rule(data=st.data(), limit=st.integers(1, 4))
    @precondition(lambda self: self.alive() and self.model.claimable(self.alive()[0]))
    def claim(self, data, limit):
        worker_id = self.draw_worker(data)
        expected = self.model.claimable(worker_id)[:limit]
        rows = self.queue.claim(worker_id, limit)
        assert {row.job_id for row in rows} == set(expected)
        self.take(worker_id, rows)

    @rule(data=st.data(), limit=st.integers(1, 2), is_kept=st.booleans())
    @precondition(lambda self: self.alive() and self.model.claimable(self.alive()[0]))
    def claim_at_the_same_time(self, data, limit, is_kept):
        one, other = self.draw_worker(data), self.draw_worker(data)
        expected = self.model.claimable(one)[:limit]
        left = [job_id for job_id in self.model.claimable(other) if job_id not in expected]
        with self.queue.transaction(is_kept=is_kept):
            first = self.queue.claim(one, limit)
            second = self.queue.claim(other, limit, self.queue.rival)
        assert {row.job_id for row in first} == set(expected)
        assert {row.job_id for row in second} == set(left[:limit])
        self.take(one, first if is_kept else [])
        self.take(other, second)

    @rule(data=st.data(), is_row_kept=st.booleans())
    @precondition(lambda self: any(self.model.running()) and len(self.alive()) > 1)
    def let_a_lease_run_out(self, data, is_row_kept):
        holders = sorted({job.lease.worker_id for job in self.model.running() if job.lease})
        worker_id = WorkerId(data.draw(st.sampled_from(holders), label="worker"))
        assert self.renew(worker_id) is self.model.is_alive.get(worker_id, False)
        end = workers.expire_workers if is_row_kept else remove_workers
        self.queue.run(end(self.queue.connection, [worker_id]))
        self.model.is_alive[worker_id] = False
        assert self.renew(worker_id) is False

    @rule(limit=st.sampled_from([1000, 1]), max_losses=st.sampled_from([2, 1]))
    @precondition(lambda self: self.model.lost())
    def recover(self, limit, max_losses):
        lost = self.model.lost()
        self.queue.statement("recovery", "adopt_orphans")
        terms = {"max_losses": max_losses, "jitter": DAY / 2, "limit": limit}
        while taken := self.queue.run(recovery.recover(self.queue.connection, **terms)):
            assert len(taken) <= limit
            for job_id, _, is_parked, _ in taken:
                lost.remove(job_id)
                job = self.model.jobs[job_id]
                self.model.lose(job, max_losses)
                assert is_parked is (job.state is JobState.DEAD_LETTER)
        self.queue.run(workers.note_recovered(self.queue.connection))
        assert lost == set()

    def renew(self, worker_id: int) -> bool:
        terms = {"lease": LEASE, "clock_offset_ms": None, "round_trip_ms": None}
        return bool(self.queue.statement("workers", "renew", worker_id=worker_id, **terms))

    def alive(self) -> list[int]:
        return [worker_id for worker_id, is_alive in self.model.is_alive.items() if is_alive]

    def draw_worker(self, data: st.DataObject) -> int:
        worker_id: int = data.draw(st.sampled_from(sorted(self.model.is_alive)), label="worker")
        return worker_id

    def take(self, worker_id: int, rows: list[ClaimedRow]) -> None:
        for row in rows:
            assert row.fence > self.newest_fence
            job = self.model.jobs[row.job_id]
            self.model.claim(job, Lease(row.job_id, row.fence, worker_id))
            assert (row.attempt, row.failures) == (job.attempt, job.failures)
            assert row.losses == job.losses
        self.newest_fence = max([self.newest_fence, *(row.fence for row in rows)])


class ReportRules(Machine):
    """Reports of leases that count and of leases that do not, often side by side."""

    @rule(data=st.data())
    @precondition(lambda self: self.model.leases())
    def finish_succeeded(self, data):
        worker_id, leases = self.draw_leases(data)
        reports = Successes(
            [lease.job_id for lease in leases],
            [lease.fence for lease in leases],
            [1] * len(leases),
            [2] * len(leases),
            [b"{}"] * len(leases),
        )
        finish = attempts.finish_succeeded(self.queue.connection, worker_id, reports)
        for job in self.accepted(leases, self.queue.run(finish)):
            self.model.leave(job, JobState.SUCCEEDED, AttemptStatus.SUCCEEDED)

    @rule(data=st.data(), state=st.sampled_from(sorted(ENDINGS)))
    @precondition(lambda self: self.model.leases())
    def finish_ended(self, data, state):
        worker_id, leases = self.draw_leases(data)
        terms: dict[str, Any] = {"state": state, "status": ENDINGS[state], "failed": 1}
        reports = [Ending(*report_of(lease), 1, 2, error="told so", **terms) for lease in leases]
        finish = attempts.finish_ended(self.queue.connection, worker_id, reports)
        for job in self.accepted(leases, self.queue.run(finish)):
            self.model.leave(job, state, ENDINGS[state])
            job.failures += 1

    @rule(
        data=st.data(),
        delay=st.sampled_from([NOW, DAY, 3 * DAY]),
        status=st.sampled_from([AttemptStatus.FAILED, AttemptStatus.SNOOZED, AttemptStatus.LOST]),
        failed=st.integers(0, 1),
    )
    @precondition(lambda self: self.model.leases())
    def finish_requeued(self, data, delay, status, failed):
        worker_id, leases = self.draw_leases(data)
        terms: dict[str, Any] = {"status": status, "failed": failed, "delay": delay}
        reports = [Return(*report_of(lease), 1, 2, error="again", **terms) for lease in leases]
        finish = attempts.finish_requeued(self.queue.connection, worker_id, reports)
        for job in self.accepted(leases, self.queue.run(finish)):
            self.model.leave(job, JobState.QUEUED, status)
            job.failures += failed
            job.wait_until(delay)

    @rule(data=st.data(), waits_for=st.sampled_from([None, WaitsFor.HANDLER]))
    @precondition(lambda self: self.model.leases())
    def hand_back(self, data, waits_for):
        _, leases = self.draw_leases(data)
        reports = [report_of(lease) for lease in leases]
        self.queue.run(attempts.hand_back(self.queue.connection, reports, waits_for))
        for lease in filter(self.model.is_current, leases):
            job = self.model.jobs[lease.job_id]
            self.model.leave(job, JobState.QUEUED, None)
            job.wait_until(NOW, waits_for)

    @rule(data=st.data())
    @precondition(lambda self: self.model.leases())
    def mark_and_save(self, data):
        _, leases = self.draw_leases(data)
        for lease in leases:
            is_current = self.model.is_current(lease)
            mark = attempts.mark_alone(self.queue.connection, report_of(lease))
            save = attempts.save_checkpoint(self.queue.connection, report_of(lease), "{}")
            assert (self.queue.run(mark), self.queue.run(save)) == (is_current, is_current)
            if is_current:
                self.model.jobs[lease.job_id].is_alone = True

    @rule(data=st.data())
    @precondition(lambda self: self.model.old_leases)
    def report_late(self, data):
        _, leases = self.draw_leases(data)
        reports = [(report_of(lease), AttemptStatus.SUCCEEDED) for lease in leases]
        late, _ = self.queue.run(attempts.record_late_reports(self.queue.connection, reports))
        kept = len(late)
        assert kept == self.model.report_late(leases, AttemptStatus.SUCCEEDED)

    def draw_leases(self, data: st.DataObject) -> tuple[WorkerId, list[Lease]]:
        """Some of a worker's leases, whether they still count or not."""
        known = self.model.leases()
        worker_id = data.draw(st.sampled_from(known), label="lease").worker_id
        own = [lease for lease in known if lease.worker_id == worker_id]
        leases = data.draw(st.lists(st.sampled_from(own), min_size=1, max_size=3, unique=True))
        return WorkerId(worker_id), leases

    def accepted(self, leases: list[Lease], finished: Finished) -> list[ModelJob]:
        """The jobs whose report counts, after a look that the others were refused."""
        counting = [lease for lease in leases if self.model.accepts(lease)]
        assert set(finished.refused) == {
            report_of(lease) for lease in leases if lease not in counting
        }
        return [self.model.jobs[lease.job_id] for lease in counting]


class QueueMachine(CallerRules, OperatorRules, TimeRules, WorkerRules, ReportRules):
    """Everyone at once."""


async def remove_workers(connection: AsyncConnection[Any], worker_ids: list[WorkerId]) -> None:
    for worker_id in worker_ids:
        await workers.remove(connection, worker_id)


def report_of(lease: Lease) -> Report:
    return Report(JobId(lease.job_id), Fence(lease.fence))


@pytest.fixture
def queue(database_url: str) -> Iterator[QueueDriver]:
    driver = QueueDriver(database_url)
    yield driver
    driver.close()


def run_machine(queue: QueueDriver, budget: settings) -> None:
    class Bound(QueueMachine):
        def __init__(self) -> None:
            super().__init__(queue)

    run_state_machine_as_test(Bound, settings=budget)


def test_random_use_keeps_every_promise(queue):
    run_machine(queue, QUICK)


@pytest.mark.soak
def test_random_use_keeps_every_promise_for_a_long_time(queue):
    run_machine(queue, SOAK)
