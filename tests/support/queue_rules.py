"""Steps of the state machine that callers and operators take; workers take the rest."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mainspring.db.calls import Call
from mainspring.domain.errors import JobNotFound, MainspringError
from mainspring.domain.jobs.model import FINAL_STATES
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId, JobState, TenantId, WaitsFor
from mainspring.store import jobs, waits
from tests.support.queue_driver import DEFINITIONS, QUEUES, TENANTS, QueueDriver, text
from tests.support.queue_model import ModelJob, QueueModel
from tests.support.queue_promises import ensure_as_modelled, ensure_promises

DAY = timedelta(days=1)
A_FEW = 3
UNKNOWN_JOB = JobId(10**12)
PAYLOADS = st.sampled_from([{"n": 1}, {"n": 2}])
DEDUPES: list[dict[str, Any]] = [
    {},
    {"dedupe_key": "k"},
    {"dedupe_key": "k", "dedupe_window": DAY},
    {"dedupe_key": "k", "dedupe_window": DAY},
    {"dedupe_by": "content"},
    {"dedupe_by": "content", "dedupe_window": DAY},
]


@st.composite
def enqueue_options(draw: st.DrawFn) -> dict[str, Any]:
    """Keyword arguments of EnqueueOptions; `deadline` is still the time from the start."""
    return {
        **draw(bulk_options()),
        "idempotency_key": draw(st.sampled_from([None, None, None, "i", "j"])),
        "on_duplicate": draw(st.sampled_from(["raise", "existing"])),
        **draw(st.sampled_from(DEDUPES)),
    }


@st.composite
def bulk_options(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "tenant_id": draw(st.sampled_from([*TENANTS[:1] * 3, *TENANTS])),
        "queue": draw(st.sampled_from(QUEUES)),
        "priority": draw(st.sampled_from([100, 50])),
        "delay": draw(st.sampled_from([None, None, DAY, 3 * DAY])),
        "deadline": draw(st.sampled_from([None, None, 10 * DAY, 20 * DAY])),
    }


class Machine(RuleBasedStateMachine):
    """The queue, the model beside it, and the comparison after every step."""

    def __init__(self, queue: QueueDriver) -> None:
        super().__init__()
        self.queue = queue
        self.model = QueueModel(queue.content_digest)
        self.started_at = queue.clean()
        self.seen = queue.observe()

    def options(self, given: dict[str, Any]) -> EnqueueOptions:
        deadline = given["deadline"]
        return EnqueueOptions(**{**given, "deadline": deadline and self.started_at + deadline})

    def add(self, job_id: int, key: str, payload: Any, *, given: dict[str, Any]) -> ModelJob:
        job = self.model.add(job_id, key, payload, options=self.options(given))
        job.deadline_in = given["deadline"]
        return job

    def ensure_refused(self, call: Call, error: MainspringError) -> None:
        """The queue refuses with the very error that the model raised."""
        with pytest.raises(type(error)) as caught:
            self.queue.call(call)
        assert vars(caught.value) == vars(error)

    @invariant()
    def promises_hold(self):
        before, self.seen = self.seen, self.queue.observe()
        ensure_promises(before, self.seen)
        ensure_as_modelled(self.seen, self.model)


class CallerRules(Machine):
    """Enqueue in all its ways."""

    @initialize(payloads=st.lists(PAYLOADS, min_size=2, max_size=5), given=bulk_options())
    def start_with_some(self, payloads, given):
        self.enqueue_many(payloads, None, given)

    @rule(
        requests=st.lists(
            st.tuples(st.sampled_from(DEFINITIONS), PAYLOADS, enqueue_options()),
            min_size=1,
            max_size=4,
        )
    )
    def enqueue(self, requests):
        for key, payload, given in requests:
            self.enqueue_one(key, payload, given)

    def enqueue_one(self, key: str, payload: Any, given: dict[str, Any]) -> None:
        options = self.options(given)
        call = jobs.enqueue(key, text(payload), options)
        try:
            earlier = self.model.earlier(key, payload, options)
        except MainspringError as error:
            self.ensure_refused(call, error)
            return
        ((job_id, is_new),) = self.queue.call(call)
        assert (job_id, is_new) == (earlier or job_id, earlier is None)
        self.model.reserve(job_id, key, payload, options=options)
        if is_new:
            self.add(job_id, key, payload, given=given)

    @rule(
        payloads=st.lists(PAYLOADS, max_size=4),
        keys=st.none() | st.lists(st.sampled_from([None, "k", "l"]), min_size=4, max_size=4),
        given=bulk_options(),
    )
    def enqueue_many(self, payloads, keys, given):
        keys = keys and keys[: len(payloads)]
        texts = [text(payload).encode() for payload in payloads]
        call = jobs.enqueue_many("build", texts, self.options(given), dedupe_keys=keys)
        rows = iter(self.queue.call(call))
        for payload, key in zip(payloads, keys or [None] * len(payloads), strict=True):
            if not self.model.holder(given["tenant_id"], key):
                (job_id,) = next(rows)
                self.add(job_id, "build", payload, given=given).dedupe_key = key
        assert list(rows) == []

    @rule(payload=PAYLOADS, given=enqueue_options(), bulk=bulk_options())
    def enqueue_and_roll_back(self, payload, given, bulk):
        with self.queue.transaction(is_kept=False):
            many = jobs.enqueue_many("build", [b"{}", b"{}"], self.options(bulk))
            assert len(self.queue.call(many)) == 2
            try:
                self.queue.call(jobs.enqueue("build", text(payload), self.options(given)))
            except MainspringError:
                return

    @rule()
    @precondition(lambda self: self.model.reservations)
    def let_keys_expire(self):
        self.queue.execute("update mainspring.enqueue_keys set expires_at = now()")
        self.model.reservations.clear()


class OperatorRules(Machine):
    """Cancel, retry and delete, each refused where `MOVES` refuses it."""

    @rule(data=st.data())
    @precondition(lambda self: len(self.model.live()) > A_FEW)
    def cancel(self, data):
        job = self.draw_job(data, frozenset({JobState.RUNNING, JobState.SUCCEEDED}))
        call = jobs.cancel(TenantId(job.tenant_id), JobId(job.job_id), "why not")
        try:
            state = self.model.cancel(job)
        except MainspringError as error:
            self.ensure_refused(call, error)
        else:
            assert self.queue.call(call) == [(state,)]

    @rule(data=st.data(), payload=st.none() | PAYLOADS)
    @precondition(lambda self: any(job.is_final for job in self.model.jobs.values()))
    def retry(self, data, payload):
        job = self.draw_job(data, FINAL_STATES)
        call = jobs.retry(TenantId(job.tenant_id), JobId(job.job_id), payload and text(payload))
        try:
            self.model.retry(job, payload)
        except MainspringError as error:
            self.ensure_refused(call, error)
        else:
            assert self.queue.call(call) == [(job.job_id,)]

    @rule(data=st.data())
    @precondition(lambda self: len(self.model.jobs) > 2 * A_FEW)
    def delete(self, data):
        job = self.draw_job(data)
        call = jobs.delete(TenantId(job.tenant_id), JobId(job.job_id))
        try:
            self.model.delete(job)
        except MainspringError as error:
            self.ensure_refused(call, error)
        else:
            self.queue.call(call)

    @rule(data=st.data(), ask=st.sampled_from([jobs.retry, jobs.delete]))
    @precondition(lambda self: self.model.jobs)
    def ask_for_what_another_tenant_has(self, data, ask):
        job = self.draw_job(data)
        (stranger,) = (TenantId(tenant) for tenant in TENANTS if tenant != job.tenant_id)
        for job_id in (JobId(job.job_id), UNKNOWN_JOB):
            self.ensure_refused(ask(stranger, job_id), JobNotFound(job_id))
            self.ensure_refused(jobs.cancel(stranger, job_id, ""), JobNotFound(job_id))

    def draw_job(self, data: st.DataObject, states: frozenset[JobState] = frozenset()) -> ModelJob:
        """One in the states if there is any; else whichever."""
        known = list(self.model.jobs.values())
        preferred = [job for job in known if job.state in states]
        job: ModelJob = data.draw(st.sampled_from(preferred or known), label="job")
        return job


class TimeRules(Machine):
    """What ends a wait."""

    @rule(horizon=st.sampled_from([4 * DAY, 2 * DAY]))
    @precondition(lambda self: self.waiting_for(WaitsFor.TIME))
    def promote(self, horizon):
        due = [job for job in self.waiting_for(WaitsFor.TIME) if job.due_in <= horizon]
        now = self.started_at + horizon
        rows = self.queue.statement("waits", "promote", now=now, limit=1000)
        assert sorted(row[2] for row in rows) == sorted(job.queue for job in due)
        for job in due:
            job.waits_for = None

    @rule(horizon=st.sampled_from([15 * DAY, 25 * DAY]))
    @precondition(lambda self: any(job.deadline_in for job in self.queued()))
    def expire(self, horizon):
        late = [job for job in self.queued() if job.deadline_in and job.deadline_in <= horizon]
        now = self.started_at + horizon
        rows = self.queue.statement("waits", "expire", now=now, limit=1000)
        assert {job_id for (job_id,) in rows} == {job.job_id for job in late}
        for job in late:
            self.model.end_waiting(job)

    @rule(data=st.data())
    @precondition(lambda self: self.waiting_for(WaitsFor.HANDLER))
    def release_known(self, data):
        held = self.waiting_for(WaitsFor.HANDLER)
        known = data.draw(st.sampled_from(sorted({job.definition for job in held})))
        self.queue.run(waits.release_known(self.queue.connection, [known], []))
        for job in held:
            job.waits_for = None if job.definition == known else job.waits_for

    @rule()
    @precondition(lambda self: any(job.is_asked_to_cancel for job in self.model.jobs.values()))
    def settle_cancels(self):
        self.queue.run(waits.settle_cancels(self.queue.connection))
        for job in self.queued():
            if job.is_asked_to_cancel:
                self.model.end_waiting(job)

    def queued(self) -> list[ModelJob]:
        return [job for job in self.model.jobs.values() if job.state is JobState.QUEUED]

    def waiting_for(self, what: WaitsFor) -> list[ModelJob]:
        return [job for job in self.model.jobs.values() if job.waits_for is what]
