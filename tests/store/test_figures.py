"""Figures: what is enqueued, started and ended is counted exactly, whatever happens in between."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from mainspring.domain.figures import Durations, Part, Step
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import DEFAULT_TENANT, AttemptStatus, JobState, WorkerId
from mainspring.runtime.maintenance import figures as looks
from mainspring.store import attempts, figures, jobs, workers
from mainspring.store.attempts import ClaimedRow, Ending, Report, Return, Successes
from mainspring.store.figures import FigureRow
from tests.support.losses import recover
from tests.support.queue_driver import DEFINITIONS, QUEUES, TENANTS, QueueDriver

SECOND = 1_000_000
# What changes_of is given of the jobs that run.
ENDED = """
select array_agg(tenant_id) as tenants, array_agg(queue) as queues,
       array_agg(definition) as definitions,
       array_agg('succeeded'::mainspring.job_state) as states,
       array_agg('succeeded'::mainspring.attempt_outcome) as attempts,
       array_agg(date_part('epoch', started_at - scheduled_for)) as waits,
       array_agg(2.5::float8) as runs
  from mainspring.jobs
"""
CHANGES = "mainspring.changes_of(tenants, queues, definitions, states, attempts, waits, runs)"
CHANGE = """tenant_id, queue, definition, moved, state, attempt, day, count, wait_sum, wait_worst,
            run_sum, run_worst, stride, waits, runs"""
EVER = "select * from mainspring.figure_status where step = 'ever'"
COUNTED = (
    "enqueued",
    "succeeded",
    "failed",
    "canceled",
    "deleted",
    "revived",
    "attempts_failed",
    "attempts_lost",
)


@pytest.fixture
def queue(driver: QueueDriver) -> QueueDriver:
    driver.clean()
    return driver


def look(
    queue: QueueDriver, connection: AsyncConnection[Any] | None = None, *, most_keys: int = 500
) -> None:
    """As often as a test wants."""
    using = connection or queue.connection
    hurry = "update mainspring.watches set last_at = 'epoch' where name = 'figures'"
    queue.run(using.execute(hurry))
    assert queue.run(looks.look(using, most_keys=most_keys)) is not None


def ever(queue: QueueDriver) -> dict[tuple[str, str, str], FigureRow]:
    rows = [FigureRow(*row[1:]) for row in queue.execute(EVER)]
    return {(row.tenant_id, row.queue, row.definition): row for row in rows}


def enqueue(driver: QueueDriver, definition: str = "build", **options: Any) -> int:
    ((job_id, *_),) = driver.call(jobs.enqueue(definition, "{}", EnqueueOptions(**options)))
    return int(job_id)


def succeed(
    queue: QueueDriver, worker_id: WorkerId, rows: list[ClaimedRow], *, ran: int = SECOND
) -> None:
    reports = Successes(
        [row.job_id for row in rows],
        [row.fence for row in rows],
        [0] * len(rows),
        [ran] * len(rows),
        [None] * len(rows),
    )
    queue.run(attempts.finish_succeeded(queue.connection, worker_id, reports))


class Walk:
    """Random use of the queue, with its own count of what it did."""

    def __init__(self, queue: QueueDriver, seed: int) -> None:
        self.queue, self.rng = queue, random.Random(seed)
        self.worker_id = queue.register()
        self.running: list[ClaimedRow] = []
        self.done: Counter[tuple[tuple[str, str, str], str]] = Counter()
        self.started: Counter[tuple[str, str, str]] = Counter()

    def step(self) -> None:
        choices = (self.enqueue, self.claim, self.succeed, self.fail, self.retry, self.hand_back)
        rare = (self.roll_back, self.delete, self.cancel, self.revive, self.lose, self.look)
        self.rng.choice((*choices, *choices, *rare))()

    def note(self, row: ClaimedRow, what: str) -> None:
        self.done[(row.tenant_id, row.queue, row.definition), what] += 1

    def enqueue(self) -> None:
        key = tuple(self.rng.choice(each) for each in (TENANTS, QUEUES, DEFINITIONS))
        for _ in range(self.rng.randint(1, 5)):
            enqueue(self.queue, key[2], tenant_id=key[0], queue=key[1])
            self.done[key, "enqueued"] += 1  # type: ignore[index]

    def roll_back(self) -> None:
        with self.queue.transaction(is_kept=False):
            enqueue(self.queue)

    def claim(self) -> None:
        self.running += self.queue.claim(self.worker_id, self.rng.randint(1, 6))

    def _take(self) -> list[ClaimedRow]:
        self.rng.shuffle(self.running)
        count = self.rng.randint(0, len(self.running))
        taken, self.running = self.running[:count], self.running[count:]
        return taken

    def succeed(self) -> None:
        rows = self._take()
        succeed(self.queue, self.worker_id, rows)
        for row in rows:
            self.note(row, "succeeded")

    def fail(self) -> None:
        rows = self._take()
        reports = [
            Ending(row.job_id, row.fence, 0, 0, JobState.FAILED, AttemptStatus.FAILED, "no", 1)
            for row in rows
        ]
        self.queue.run(attempts.finish_ended(self.queue.connection, self.worker_id, reports))
        for row in rows:
            self.note(row, "failed")
            self.note(row, "attempts_failed")

    def retry(self) -> None:
        rows = self._take()
        reports = [
            Return(row.job_id, row.fence, 0, 0, AttemptStatus.FAILED, "no", 1, timedelta())
            for row in rows
        ]
        self.queue.run(attempts.finish_requeued(self.queue.connection, self.worker_id, reports))
        for row in rows:
            self.note(row, "attempts_failed")

    def hand_back(self) -> None:
        rows = self._take()
        leases = [Report(row.job_id, row.fence) for row in rows]
        self.queue.run(attempts.hand_back(self.queue.connection, leases))

    def lose(self) -> None:
        self.queue.run(workers.expire_workers(self.queue.connection, [self.worker_id]))
        recover(self.queue)
        for row in self.running:
            self.note(row, "attempts_lost")
        self.running.clear()
        self.worker_id = self.queue.register()
        self.queue.execute("update mainspring.jobs set waits_for = null where waits_for = 'time'")

    def _some(self, state: str, table: str = "jobs") -> list[tuple[int, tuple[str, str, str]]]:
        rows = self.queue.execute(
            f"select job_id, tenant_id, queue, definition from mainspring.{table}"
            f" where state = '{state}' order by random() limit 2"
        )
        return [(row[0], row[1:]) for row in rows]

    def delete(self) -> None:
        for job_id, key in self._some("queued"):
            self.queue.execute(f"select mainspring.remove_jobs(array[{job_id}], '{key[0]}')")
            self.done[key, "deleted"] += 1

    def cancel(self) -> None:
        for job_id, key in self._some("queued"):
            self.queue.execute(
                f"update mainspring.jobs set cancel_requested_at = now() where job_id = {job_id}"
            )
            self.queue.execute(f"select mainspring.settle_cancel({job_id})")
            self.done[key, "canceled"] += 1

    def revive(self) -> None:
        for job_id, key in self._some("failed", "jobs_history"):
            self.queue.execute(f"select mainspring.put_back({job_id}, null, '{key[0]}')")
            self.done[key, "revived"] += 1

    def look(self) -> None:
        look(self.queue)


@pytest.mark.parametrize("seed", range(8))
def test_every_figure_equals_what_was_done_whenever_it_was_looked(queue, seed):
    walk = Walk(queue, seed)
    for _ in range(60):
        walk.step()

    look(queue)

    found = ever(queue)
    keys = {key for key, _ in walk.done}
    for key in keys:
        for what in COUNTED:
            assert getattr(found[key], what) == walk.done[key, what], (key, what)
    ((live, running),) = queue.execute(
        "select count(*), count(*) filter (where state = 'running') from mainspring.jobs"
    )
    assert sum(row[0] for row in queue.execute("select live from mainspring.depths")) == live
    attempts_ended = sum(
        getattr(row, f"attempts_{status}")
        for row in found.values()
        for status in ("succeeded", "failed", "timeout", "canceled", "snoozed", "lost")
    )
    over = sum(row[0] for row in queue.execute("select started_over from mainspring.depths"))
    assert sum(row.started for row in found.values()) - over == attempts_ended + running


def test_what_is_committed_late_is_counted_when_it_is(queue):
    look(queue)
    with queue.transaction(is_kept=True):
        enqueue(queue)
        look(queue, queue.rival)
        look(queue, queue.rival)
        assert not queue.run(queue.rival.execute(EVER)).rowcount
    look(queue)

    ((figure),) = ever(queue).values()
    assert (figure.enqueued, figure.ready) == (1, 1)


def test_a_second_look_at_once_is_none(queue):
    assert queue.run(looks.look(queue.connection)) == 0
    assert queue.run(looks.look(queue.connection)) is None


def test_of_two_looks_at_once_one_waits_for_its_turn(queue):
    enqueue(queue)
    with queue.transaction(is_kept=True):
        look(queue)
        assert queue.run(looks.look(queue.rival)) is None

    assert [row.enqueued for row in ever(queue).values()] == [1]


def test_a_look_that_is_undone_loses_and_doubles_nothing(queue):
    worker_id = queue.register()
    enqueue(queue)
    succeed(queue, worker_id, queue.claim(worker_id, 1))
    with queue.transaction(is_kept=False):
        look(queue)
    look(queue)
    look(queue)

    (figure,) = ever(queue).values()
    assert (figure.enqueued, figure.started, figure.succeeded) == (1, 1, 1)
    tallied = queue.execute("select sum(count) from mainspring.tally_status")
    assert tallied == [(1,)]


def test_what_programs_of_the_release_before_count_is_tallied(queue):
    queue.execute(
        "insert into mainspring.tally_changes (tenant_id, state, count)"
        " values ('default', 'failed', 3)"
    )
    look(queue)

    assert queue.execute("select state, count from mainspring.tallies") == [("failed", 3)]
    assert not queue.execute("select from mainspring.tally_changes")


def test_beyond_the_cap_definitions_are_counted_together(queue):
    for definition in DEFINITIONS:
        for queue_name in QUEUES:
            enqueue(queue, definition, queue=queue_name)
    look(queue, most_keys=1)

    found = ever(queue)
    assert sum(row.enqueued for row in found.values()) == 4
    assert len([key for key in found if key[2] != "~other"]) == 1
    worker_id = queue.register()
    succeed(queue, worker_id, queue.claim(worker_id, 10))
    look(queue, most_keys=1)
    assert sum(row.succeeded for row in ever(queue).values()) == 4
    assert sum(row.enqueued for row in ever(queue).values()) == 4


def test_who_finishes_by_itself_counts_as_changes_of_does(queue):
    """The fast path of successes beside the function that all others call."""
    worker_id = queue.register()
    for definition in (*DEFINITIONS, "build"):
        enqueue(queue, definition)
    queue.execute("update mainspring.jobs set scheduled_for = now() - job_id * interval '1 second'")
    rows = queue.claim(worker_id, 3)
    named = ", ".join(f"change.{name.strip()}" for name in CHANGE.split(","))
    expected = queue.execute(f"select {named} from ({ENDED}) as ended, lateral {CHANGES} as change")

    succeed(queue, worker_id, rows, ran=2 * SECOND + SECOND // 2)

    changes = queue.execute(f"select {CHANGE} from mainspring.changes")
    assert len(changes) == 2
    assert _unordered(changes) == _unordered(expected)


def _unordered(changes: list[tuple[Any, ...]]) -> list[list[str]]:
    """Changes by key, the buckets of each in any order."""
    return sorted(
        [str(sorted(value) if isinstance(value, list) else value) for value in change]
        for change in changes
    )


# Waits and durations


def durations(queue: QueueDriver) -> tuple[Durations, Durations]:
    (row,) = ever(queue).values()
    return (
        Durations.of(row.wait_buckets, row.wait_sum, row.wait_worst),
        Durations.of(row.run_buckets, row.run_sum, row.run_worst),
    )


@pytest.mark.parametrize("count", [1, 1000])
def test_quantiles_are_off_by_less_than_a_twentieth(queue, count):
    worker_id = queue.register()
    queue.call(jobs.enqueue_many("build", [b"{}"] * count))
    rows = queue.claim(worker_id, count)
    for number, row in enumerate(rows):
        succeed(queue, worker_id, [row], ran=(number + 1) * 10_000)
    look(queue)

    _, ran = durations(queue)
    assert ran.count == count
    assert ran.worst == pytest.approx(count * 0.01)
    for quantile, share in ((ran.p50, 0.5), (ran.p95, 0.95), (ran.p99, 0.99)):
        assert quantile == pytest.approx((1 + share * (count - 1)) * 0.01, rel=0.045)


def test_of_many_jobs_at_once_some_give_their_buckets_and_count_for_all(queue):
    worker_id = queue.register()
    queue.call(jobs.enqueue_many("build", [b"{}"] * 2048))
    succeed(queue, worker_id, queue.claim(worker_id, 2048))
    look(queue)

    waited, ran = durations(queue)
    assert (waited.count, ran.count) == (2048, 2048)
    assert ran.p50 == pytest.approx(1, rel=0.045)


@pytest.mark.parametrize("wait", ["limit", "handler", "approval", "parents"])
def test_a_job_that_waited_for_more_than_its_time_has_waited_only_since(queue, wait):
    job_id = enqueue(queue)
    queue.execute(
        "update mainspring.jobs set scheduled_for = now() - interval '3 days',"
        " created_at = now() - interval '3 days'"
    )
    if wait == "limit":
        queue.execute("insert into mainspring.limits (name, concurrency) values ('x', 1)")
        queue.execute("update mainspring.definitions set limit_name = 'x' where key = 'build'")
        assert queue.execute("select waits_for from mainspring.jobs") == [("limit",)]
        queue.execute("update mainspring.definitions set limit_name = null where key = 'build'")
    elif wait == "handler":
        queue.execute("update mainspring.jobs set waits_for = 'handler'")
        queue.statement("waits", "release_known", definitions=["build"], kinds=[], limit=10)
    else:
        state = {"approval": "awaiting_approval", "parents": "blocked"}[wait]
        queue.execute(f"update mainspring.jobs set waits_for = '{wait}', state = '{state}'")
        queue.execute(f"select mainspring.move_on({job_id})")
    worker_id = queue.register()
    ((oldest,),) = queue.execute("select oldest_ready_at from mainspring.queue_status")
    assert datetime.now(UTC) - oldest < timedelta(minutes=1)

    succeed(queue, worker_id, queue.claim(worker_id, 1))
    look(queue)

    waited, _ = durations(queue)
    assert waited.worst is not None
    assert waited.worst < 60


# Steps


def test_hours_and_days_are_the_sum_of_their_minutes(queue):
    worker_id = queue.register()
    queue.call(jobs.enqueue_many("build", [b"{}"] * 30))
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(
        days=1
    )
    for hour, minute in ((1, 5), (1, 6), (2, 0)):
        succeed(queue, worker_id, queue.claim(worker_id, 10), ran=hour * SECOND)
        look(queue)
        queue.execute(
            "update mainspring.figures set at = %(at)s where step = 'minute'"
            " and at > now() - interval '1 hour'",
            {"at": yesterday + timedelta(hours=hour, minutes=minute)},
        )

    def read(step: Step) -> FigureRow:
        part = Part(step, yesterday, yesterday + timedelta(days=1))
        rows: list[FigureRow] = queue.run(
            figures.read(queue.connection, DEFAULT_TENANT, [part], span=timedelta(days=1))
        )
        return rows[0]

    minutes = read(Step.MINUTE)
    queue.run(looks.compact(queue.connection))
    days = read(Step.DAY)
    assert minutes.succeeded == 30
    assert minutes == read(Step.HOUR) == days
    assert queue.execute("select count(*) from mainspring.figures where step = 'hour'") == [(2,)]
    assert not queue.execute("select from mainspring.figures where step = 'minute'"), "are old"
    queue.run(looks.compact(queue.connection))
    assert read(Step.DAY) == days
