"""What the queue promises, checked on the tables alone, and what the model says they hold."""

from collections import Counter
from collections.abc import Iterator

from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES, MOVES
from mainspring.domain.types import AttemptStatus, JobState
from tests.support.queue_driver import AttemptRow, JobRow, Observation
from tests.support.queue_model import ModelJob, QueueModel


def ensure_promises(before: Observation, after: Observation) -> None:
    """What must hold after every step, whatever the model believes."""
    ensure_each_job_is_in_one_place(after)
    ensure_legal_moves(before, after)
    ensure_one_holder_a_key(after)
    ensure_lanes_show_what_is_ready(after)
    ensure_attempts_increase(after)


def ensure_as_modelled(seen: Observation, model: QueueModel) -> None:
    known = sorted(model.jobs.values(), key=lambda job: job.job_id)
    assert seen.jobs == [expected_row(job) for job in known]
    assert seen.attempts == [row for job in known for row in expected_attempts(job)]


def ensure_each_job_is_in_one_place(seen: Observation) -> None:
    twice = [job_id for job_id, n in Counter(row.job_id for row in seen.jobs).items() if n > 1]
    assert twice == []
    for row in seen.jobs:
        assert JobState(row.state) in (LIVE_STATES if row.is_live else FINAL_STATES)


def ensure_legal_moves(before: Observation, after: Observation) -> None:
    new = after.states()
    for job_id, state in before.states().items():
        target = new.get(job_id, state)
        assert target is state or target in MOVES[state], f"job {job_id}: {state} to {target}"


def ensure_one_holder_a_key(seen: Observation) -> None:
    held = Counter((r.tenant_id, r.dedupe_key) for r in seen.jobs if r.is_live and r.dedupe_key)
    assert [key for key, count in held.items() if count > 1] == []


def ensure_lanes_show_what_is_ready(seen: Observation) -> None:
    firsts: dict[Lane, int] = {}
    for row in seen.jobs:
        if row.state == JobState.QUEUED and row.waits_for is None:
            firsts.setdefault(Lane(row.priority, row.tenant_id, row.queue), row.job_id)
    assert seen.lanes == firsts


def ensure_attempts_increase(seen: Observation) -> None:
    """Numbers and fences of a job's executions strictly increase, and none is reported twice."""
    last: dict[int, AttemptRow] = {}
    for row in seen.attempts:
        earlier = last.get(row.job_id)
        if earlier:
            assert (row.number > earlier.number, row.fence > earlier.fence) == (True, True)
        assert row.status != AttemptStatus.RUNNING
        last[row.job_id] = row
    for job in seen.jobs:
        if job.fence is not None and job.job_id in last:
            assert job.fence > last[job.job_id].fence


def expected_row(job: ModelJob) -> JobRow:
    """The row that the model says there must be."""
    return JobRow(
        job_id=job.job_id,
        definition=job.definition,
        payload=job.payload,
        tenant_id=job.tenant_id,
        queue=job.queue,
        priority=job.priority,
        dedupe_key=job.dedupe_key,
        state=job.state,
        waits_for=job.waits_for,
        worker_id=job.lease and job.lease.worker_id,
        fence=job.lease and job.lease.fence,
        attempt=job.attempt,
        failures=job.failures,
        losses=job.losses,
        is_asked_to_cancel=job.is_asked_to_cancel,
        is_live=job.state in LIVE_STATES,
    )


def expected_attempts(job: ModelJob) -> Iterator[AttemptRow]:
    for execution in job.executions:
        yield AttemptRow(
            job.job_id, execution.number, execution.fence, execution.status, execution.late_report
        )
