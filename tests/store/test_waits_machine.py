"""Limits, approvals and dependencies under random use: no cap is ever exceeded, nothing that must
not run runs, and nothing waits for ever.

Hypothesis strings together enqueues of limited, approved and dependent jobs, votes, grants,
settlings, claims, reports, lost workers, cancels, retries and changed limits. At the end everything
is approved and worked off, and no job may be left.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mainspring.domain.errors import MainspringError
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import (
    AttemptStatus,
    Fence,
    JobId,
    JobState,
    TenantId,
    WorkerId,
)
from mainspring.runtime.maintenance.dependencies import resolve_all
from mainspring.services.claiming import ClaimOrder
from mainspring.store import approvals, attempts, flows, jobs, limits, recovery, waits, workers
from mainspring.store.attempts import ClaimedRow, Ending, Report, Return, Successes
from tests.support.queue_driver import QUEUES, QueueDriver, text

DEFINITIONS = ("free", "serial", "capped", "keyed", "asked")
TENANTS = ("default", "acme")
TENANT_CAP = 2
DAY = timedelta(days=1)
ROUNDS = 20
CLEAN = ("limits", "approvals", "dependencies", "flows", "buckets", "definitions")
SETUP = """
insert into mainspring.definitions (key, kind, queue, concurrency, key_concurrency, limit_by,
                                    approvals_needed)
values ('free', 'python', 'a', null, null, null, 0), ('serial', 'python', 'a', 1, null, null, 0),
       ('capped', 'python', 'b', 3, null, null, 0), ('keyed', 'python', 'a', 3, 1, '{n}', 0),
       ('asked', 'python', 'b', null, null, null, 1)
"""
HELD = """
select limit_name, limit_key, tenant_id, definition from mainspring.jobs
 where waits_for is null and state in ('queued', 'running')
"""
GRANT_ALL = """
select granted from (
    select array_agg(limit_name) as names, array_agg(limit_key) as keys,
           array_agg(tenant_id) as tenants
      from (select distinct limit_name, limit_key, tenant_id from mainspring.jobs
             where waits_for = 'limit') as waiting) as every,
       lateral mainspring.grant_places(every.names, every.keys, every.tenants, 100)
 where every.names is not null
"""
WRONG_RUNS = """
select job.job_id from mainspring.jobs as job
 where job.state = 'running'
   and (exists (select from mainspring.approvals as asked
                 where asked.job_id = job.job_id and asked.decision is distinct from 'approved')
        or exists (select from mainspring.dependencies as d
                    where d.job_id = job.job_id and d.outcome is null))
"""
QUICK = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
SOAK = settings(QUICK, max_examples=800, stateful_step_count=70, derandomize=False)


class WaitsMachine(RuleBasedStateMachine):
    """The real tables, and what must hold of them after every step."""

    def __init__(self, queue: QueueDriver) -> None:
        super().__init__()
        self.queue = queue
        start_over(queue)
        queue.execute(
            "update mainspring.tenants set max_running = %(cap)s where tenant_id = 'acme'",
            {"cap": TENANT_CAP},
        )
        self.worker_id = queue.register()
        self.leases: dict[int, Report] = {}
        # A cap that was lowered may still be exceeded by what held a place then.
        self.allowed: dict[Any, int] = {}

    # What people do

    @rule(
        key=st.sampled_from(DEFINITIONS),
        number=st.integers(1, 2),
        tenant=st.sampled_from(TENANTS),
        delay=st.sampled_from([None, None, None, DAY]),
        needed=st.sampled_from([None, None, None, 1]),
        on_failure=st.sampled_from(["cancel", "continue", "wait"]),
        data=st.data(),
    )
    def enqueue(self, key, number, tenant, delay, needed, on_failure, data):
        options = EnqueueOptions(
            tenant_id=TenantId(tenant),
            delay=delay,
            approvals_needed=needed,
            after=tuple(self.draw_jobs(data, tenant)),
            on_parent_failure=on_failure,
        )
        self.queue.call(jobs.enqueue(key, text({"n": number}), options))

    @rule(key=st.sampled_from(DEFINITIONS), tenant=st.sampled_from(TENANTS))
    def enqueue_many(self, key, tenant):
        options = EnqueueOptions(tenant_id=TenantId(tenant))
        self.queue.call(jobs.enqueue_many(key, [b'{"n": 1}', b'{"n": 2}', b'{"n": 1}'], options))

    @rule(tenant=st.sampled_from(TENANTS), on_failure=st.sampled_from(["cancel", "continue"]))
    def enqueue_diamond(self, tenant, on_failure):
        steps = [
            {"definition": "serial"},
            {"definition": "keyed", "payload": {"n": 1}, "after": [0]},
            {"definition": "asked", "after": [0], "on_parent_failure": on_failure},
            {"definition": "capped", "after": [1, 2], "on_parent_failure": on_failure},
        ]
        self.queue.call(flows.enqueue(TenantId(tenant), "diamond", text(steps)))

    @rule(data=st.data(), is_approval=st.booleans())
    @precondition(lambda self: self.live("state = 'awaiting_approval'"))
    def vote(self, data, is_approval):
        job_id, tenant = self.draw(data, "state = 'awaiting_approval'")
        decide = approvals.approve if is_approval else approvals.reject
        vote = {"reason": "so be it", "actor": "ann"}
        self.queue.run(decide(self.queue.connection, tenant, job_id, **vote))

    @rule(data=st.data())
    @precondition(lambda self: self.live())
    def cancel(self, data):
        job_id, tenant = self.draw(data)
        self.queue.call(jobs.cancel(tenant, job_id, "why not"))

    @rule(data=st.data())
    def retry(self, data):
        ended = self.queue.execute(
            "select job_id, tenant_id from mainspring.jobs_history where state <> 'succeeded'"
        )
        if ended:
            job_id, tenant = data.draw(st.sampled_from(sorted(ended)))
            self.queue.call(jobs.retry(TenantId(tenant), JobId(job_id)))

    @rule(key=st.sampled_from(["serial", "capped", "free"]), cap=st.sampled_from([None, 0, 1, 2]))
    def change_a_limit(self, key, cap):
        self.queue.execute(
            "update mainspring.definitions set concurrency = %(cap)s where key = %(key)s",
            {"cap": cap, "key": key},
        )
        self.note_allowed()

    # What workers do

    @rule(limit=st.integers(1, 5))
    def claim_limited(self, limit):
        claim = ClaimOrder().claim_limited(
            self.queue.connection, WorkerId(self.worker_id), QUEUES, limit=limit
        )
        self.note(self.queue.run(claim))

    @rule(queue=st.sampled_from(QUEUES))
    def claim_some_keys(self, queue):
        keys = [LimitKey("serial", "", "default"), LimitKey("keyed", "1", "acme")]
        worker_id = WorkerId(self.worker_id)
        claimed = self.queue.run(
            limits.claim(self.queue.connection, keys, worker_id=worker_id, queues=[queue], limit=2)
        )
        assert claimed is not None
        self.note(ClaimedRow(*row) for row in claimed.rows)

    @rule()
    def grant_as_the_release_before(self):
        self.queue.execute(GRANT_ALL)

    @rule()
    def take_back(self):
        assert self.queue.run(limits.take_back(self.queue.connection))

    @rule()
    def settle(self):
        self.queue.run(resolve_all(self.queue.connection))

    @rule()
    def promote(self):
        self.queue.execute("update mainspring.jobs set scheduled_for = now()")
        self.queue.run(waits.promote(self.queue.connection))

    @rule(limit=st.integers(1, 5))
    def claim(self, limit):
        self.note(self.queue.claim(self.worker_id, limit))

    @rule(data=st.data(), how=st.sampled_from(["succeed", "fail", "again", "later", "back"]))
    @precondition(lambda self: self.leases)
    def report(self, data, how):
        job_id = data.draw(st.sampled_from(sorted(self.leases)))
        self.finish(self.leases.pop(job_id), how)

    @rule()
    @precondition(lambda self: self.leases)
    def lose_the_worker(self):
        self.queue.run(workers.expire_workers(self.queue.connection, [self.worker_id]))
        recover = recovery.recover(
            self.queue.connection, max_losses=100, jitter=timedelta(0), limit=1000
        )
        self.queue.run(recover)
        self.queue.run(workers.note_recovered(self.queue.connection))
        self.leases.clear()
        self.worker_id = self.queue.register()

    def note(self, rows: Iterable[ClaimedRow]) -> None:
        for row in rows:
            self.leases[row.job_id] = row.report

    def finish(self, lease: Report, how: str) -> None:
        connection, worker_id = self.queue.connection, WorkerId(self.worker_id)
        job_id, fence = JobId(lease.job_id), Fence(lease.fence)
        again: dict[str, Any] = {"status": AttemptStatus.FAILED, "error": "no", "failed": 0}
        match how:
            case "succeed":
                reports = Successes([job_id], [fence], [1], [1], [b"1"])
                self.queue.run(attempts.finish_succeeded(connection, worker_id, reports))
            case "fail":
                ending = Ending(
                    *(job_id, fence, 1, 1),
                    state=JobState.FAILED,
                    status=AttemptStatus.FAILED,
                    error="no",
                    failed=1,
                )
                self.queue.run(attempts.finish_ended(connection, worker_id, [ending]))
            case "again" | "later":
                delay = DAY if how == "later" else timedelta(0)
                back = Return(job_id, fence, 1, 1, delay=delay, **again)
                self.queue.run(attempts.finish_requeued(connection, worker_id, [back]))
            case _:
                self.queue.run(attempts.hand_back(connection, [lease]))
        self.queue.run(waits.settle_cancels(connection))

    # What must hold

    @invariant()
    def no_cap_is_exceeded(self):
        held, caps = self.held(), self.caps()
        for key, count in held.items():
            cap = caps.get(key)
            if cap is not None:
                assert count <= max(cap, self.allowed.get(key, 0)), f"{key}: {count} of {cap}"
        self.allowed = {
            key: held[key] for key, most in self.allowed.items() if 0 < held[key] <= most
        }

    @invariant()
    def nothing_runs_before_it_may(self):
        assert self.queue.execute(WRONG_RUNS) == []

    def teardown(self):
        """Approve and work off everything; nothing may be left."""
        self.queue.execute("update mainspring.definitions set concurrency = 1")
        # A round ends one job at least, and a parent that is waited for may be run once more.
        for _ in range(ROUNDS + 2 * len(self.live())):
            self.approve_all()
            self.queue.run(waits.settle_cancels(self.queue.connection))
            self.promote()
            self.settle()
            self.claim_limited(1000)
            self.claim(1000)
            for job_id in sorted(self.leases):
                self.finish(self.leases.pop(job_id), "succeed")
            self.retry_what_is_waited_for()
            if not self.live():
                return
        raise AssertionError(f"these wait for ever: {self.live()}")

    def approve_all(self) -> None:
        for job_id, tenant in self.live("state = 'awaiting_approval'"):
            connection, tenant_id = self.queue.connection, TenantId(tenant)
            self.queue.run(
                approvals.approve(connection, tenant_id, JobId(job_id), reason="", actor="ann")
            )

    def retry_what_is_waited_for(self) -> None:
        waited_for = self.queue.execute(
            "select distinct past.job_id, past.tenant_id from mainspring.dependencies as d"
            " join mainspring.jobs_history as past on past.job_id = d.parent_id"
            " where d.outcome is null and d.on_failure = 'wait' and past.state <> 'succeeded'"
        )
        for job_id, tenant in waited_for:
            self.queue.call(jobs.retry(TenantId(tenant), JobId(job_id)))

    # Looking

    def live(self, condition: str = "true") -> list[tuple[Any, ...]]:
        return self.queue.execute(
            f"select job_id, tenant_id from mainspring.jobs where {condition} order by job_id"
        )

    def draw(self, data: st.DataObject, condition: str = "true") -> tuple[JobId, TenantId]:
        job_id, tenant = data.draw(st.sampled_from(self.live(condition)))
        return JobId(job_id), TenantId(tenant)

    def draw_jobs(self, data: st.DataObject, tenant: str) -> list[JobId]:
        known = self.queue.execute(
            "select job_id from mainspring.job_status where tenant_id = %(tenant)s order by job_id",
            {"tenant": tenant},
        )
        if not known:
            return []
        some = st.lists(st.sampled_from([JobId(row[0]) for row in known]), max_size=2, unique=True)
        chosen: list[JobId] = data.draw(some)
        return chosen

    def held(self) -> Counter[Any]:
        counts: Counter[Any] = Counter()
        for name, key, tenant, _ in self.queue.execute(HELD):
            if name is None:
                continue
            counts["tenant", tenant] += 1
            if name:
                counts["limit", name] += 1
                counts["key", name, key] += 1
        return counts

    def caps(self) -> dict[Any, int | None]:
        caps: dict[Any, int | None] = {("tenant", "acme"): TENANT_CAP}
        keys = {key for key in self.held() if key[0] == "key"}
        for name, cap, key_cap in self.queue.execute(
            "select name, concurrency, key_concurrency from mainspring.limits"
        ):
            caps["limit", name] = cap
            caps |= {key: key_cap for key in keys if key[1] == name}
        return caps

    def note_allowed(self) -> None:
        self.allowed |= {key: count for key, count in self.held().items() if key[0] == "limit"}


def start_over(queue: QueueDriver) -> None:
    queue.clean()
    for table in CLEAN:
        queue.execute(f"delete from mainspring.{table}")
    queue.execute(SETUP)


@pytest.fixture
def queue(database_url: str) -> Iterator[QueueDriver]:
    driver = QueueDriver(database_url)
    yield driver
    driver.close()


def run_machine(queue: QueueDriver, budget: settings) -> None:
    class Bound(WaitsMachine):
        def __init__(self) -> None:
            super().__init__(queue)

    run_state_machine_as_test(Bound, settings=budget)


def test_random_use_exceeds_no_cap_and_leaves_nothing_waiting(queue):
    run_machine(queue, QUICK)


@pytest.mark.soak
def test_random_use_exceeds_no_cap_for_a_long_time(queue):
    run_machine(queue, SOAK)


def test_an_unknown_job_is_refused_as_a_parent(queue):
    start_over(queue)

    with pytest.raises(MainspringError, match="there is no job 999999"):
        queue.call(jobs.enqueue("free", "{}", EnqueueOptions(after=(JobId(999_999),))))
