"""Runs of a schedule: how each may end, who goes next, and what the figures say of it."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from mainspring.domain.types import DEFAULT_TENANT, AttemptStatus, JobId, JobState
from mainspring.store import attempts, jobs, recovery, slots, waits, workers
from mainspring.store import due_schedules as clock_store
from mainspring.store.attempts import Ending, Report, Return, Successes
from tests.support import schedules as support
from tests.support.queue_driver import QueueDriver
from tests.support.schedules import Row

SECOND = 1_000_000
NO_JITTER = timedelta(0)


class Runs:
    """The runs of one schedule, `tick`: fired by hand, claimed and ended as a worker does."""

    def __init__(self, driver: QueueDriver, connection: psycopg.Connection) -> None:
        self.driver, self.connection = driver, connection
        self.worker_id = driver.register()
        self.started: list[Report] = []

    def fire(self, name: str = "tick") -> int:
        query = "select mainspring.trigger_scheduled_job(%s) ->> 'job_id'"
        ((job_id,),) = self.connection.execute(query, (name,)).fetchall()
        return int(job_id)

    def begin(self, seconds: float = 0) -> Report:
        """The next job that may run is claimed, as if that many seconds ago."""
        (row,) = self.driver.claim(self.worker_id, 1)
        self.connection.execute(
            "update mainspring.jobs set started_at = started_at - %s * interval '1 second'"
            " where job_id = %s",
            (seconds, row.job_id),
        )
        return Report(row.job_id, row.fence)

    def succeed(self, seconds: float = 1) -> None:
        job_id, fence = self.begin(seconds)
        reports = Successes([job_id], [fence], [0], [int(seconds * SECOND)], [None])
        self.driver.run(attempts.finish_succeeded(self.driver.connection, self.worker_id, reports))

    def end(self, state: JobState, status: AttemptStatus = AttemptStatus.FAILED) -> None:
        job_id, fence = self.begin(3)
        terms: Row = {"state": state, "status": status, "error": "it broke", "failed": 1}
        report = Ending(job_id, fence, 0, 3 * SECOND, **terms)
        self.driver.run(attempts.finish_ended(self.driver.connection, self.worker_id, [report]))

    def come_back(self) -> None:
        """The job fails with attempts left."""
        job_id, fence = self.begin()
        terms: Row = {"status": AttemptStatus.FAILED, "error": "it broke", "failed": 1}
        report = Return(job_id, fence, 0, SECOND, delay=timedelta(hours=1), **terms)
        self.driver.run(attempts.finish_requeued(self.driver.connection, self.worker_id, [report]))

    def count(self) -> None:
        self.driver.run(slots.count_runs(self.driver.connection))

    def slots(self) -> list[Row]:
        return support.slots(self.connection)

    def status(self) -> Row:
        return support.status(self.connection)

    def live(self) -> list[Row]:
        """The jobs that have not ended, in the order of their slots."""
        return [job for job in support.jobs(self.connection) if job["finished_at"] is None]

    def first_live(self) -> JobId:
        return JobId(self.live()[0]["job_id"])

    def waits(self) -> list[str | None]:
        return [job["waits_for"] for job in self.live()]


@pytest.fixture
def runs(driver: QueueDriver, module_url: str) -> Iterator[Runs]:
    driver.clean()
    driver.execute("delete from mainspring.schedules")
    with psycopg.connect(module_url, autocommit=True) as connection:
        support.insert_schedule(connection, definition="build", overlap="queue")
        yield Runs(driver, connection)


# Approvals


@pytest.fixture
def approved_runs(runs: Runs) -> Iterator[Runs]:
    """Each of which has to be approved."""
    runs.connection.execute(
        "update mainspring.definitions set approvals_needed = 1 where key = 'build'"
    )
    yield runs
    runs.connection.execute(
        "update mainspring.definitions set approvals_needed = 0 where key = 'build'"
    )


@pytest.mark.parametrize("approved", [0, 1, 2])
def test_an_approved_run_does_not_wait_for_those_that_are_not(approved_runs: Runs, approved: int):
    fired = [approved_runs.fire() for _ in range(3)]

    approved_runs.connection.execute("select mainspring.approve(%s)", (fired[approved],))

    assert approved_runs.begin().job_id == fired[approved]


def test_an_approved_run_waits_for_one_that_runs(approved_runs: Runs):
    fired = [approved_runs.fire() for _ in range(2)]
    for job_id in reversed(fired):
        approved_runs.connection.execute("select mainspring.approve(%s)", (job_id,))

    assert approved_runs.waits() == ["turn", None]
    approved_runs.succeed()
    assert approved_runs.begin().job_id == fired[0]


# The ways in which a run ends


def succeed(runs: Runs) -> None:
    runs.succeed()


def fail(runs: Runs) -> None:
    runs.end(JobState.FAILED)


def give_up(runs: Runs) -> None:
    runs.end(JobState.DEAD_LETTER)


def stop(runs: Runs) -> None:
    runs.end(JobState.CANCELED, AttemptStatus.CANCELED)


def cancel(runs: Runs) -> None:
    runs.driver.call(jobs.cancel(DEFAULT_TENANT, runs.first_live(), "not now"))


def miss_the_deadline(runs: Runs) -> None:
    runs.connection.execute(
        "update mainspring.jobs set deadline_at = now() where waits_for is null"
    )
    assert len(runs.driver.run(waits.expire(runs.driver.connection))) == 1


def kill_the_worker(runs: Runs) -> None:
    runs.begin()
    runs.connection.execute("update mainspring.jobs set alone_fence = fence")
    runs.driver.run(workers.expire_workers(runs.driver.connection, [runs.worker_id]))
    terms: Row = {"max_losses": 1, "jitter": NO_JITTER}
    (lost,) = runs.driver.run(recovery.recover(runs.driver.connection, **terms))
    assert lost.is_parked


def lose_its_only_run(runs: Runs) -> None:
    runs.connection.execute("update mainspring.jobs set delivery = 'at_most_once'")
    report = runs.begin()
    runs.driver.run(attempts.mark_begun(runs.driver.connection, [report]))
    runs.driver.run(workers.expire_workers(runs.driver.connection, [runs.worker_id], are_dead=True))
    runs.connection.execute("update mainspring.workers set pid = 7, host = 'h', worker_id = 1")
    runs.connection.execute("update mainspring.jobs set worker_id = 1 where state = 'running'")
    terms: Row = {"max_losses": 3, "jitter": NO_JITTER}
    (lost,) = runs.driver.run(recovery.recover(runs.driver.connection, **terms))
    assert lost.is_ended


def delete(runs: Runs) -> None:
    runs.driver.call(jobs.delete(DEFAULT_TENANT, runs.first_live()))


ENDINGS = [
    pytest.param(succeed, "succeeded", None, id="succeeded"),
    pytest.param(fail, "failed", "it broke", id="failed"),
    pytest.param(give_up, "dead_letter", "it broke", id="attempts used up"),
    pytest.param(stop, "canceled", "it broke", id="stopped"),
    pytest.param(cancel, "canceled", "not now", id="canceled while queued"),
    pytest.param(
        miss_the_deadline,
        "canceled",
        "its deadline passed before it could start",
        id="deadline",
    ),
    pytest.param(
        kill_the_worker,
        "dead_letter",
        "its worker died while it ran nothing else (death 1 of 1)",
        id="recovered",
    ),
    pytest.param(
        lose_its_only_run,
        "lost",
        "lost, and not run again because it runs at most once: worker 1 (pid 7 on h) died: its "
        "process was killed or crashed",
        id="lost",
    ),
    pytest.param(delete, "canceled", "its job was deleted", id="deleted"),
]


@pytest.mark.parametrize(("finish", "run_state", "reason"), ENDINGS)
def test_a_slot_says_how_its_run_ended(runs, finish, run_state, reason):
    runs.fire()
    assert [slot["run_state"] for slot in runs.slots()] == [None]

    finish(runs)

    (slot,) = runs.slots()
    assert (slot["outcome"], slot["run_state"], slot["reason"]) == ("enqueued", run_state, reason)
    assert slot["message"] == reason
    assert slot["finished_at"] is not None


@pytest.mark.parametrize(("finish", "run_state", "reason"), ENDINGS)
def test_when_a_run_ends_the_next_in_line_may_start(runs, finish, run_state, reason):
    _, second, _ = [runs.fire() for _ in range(3)]
    assert runs.waits() == [None, "turn", "turn"]

    finish(runs)

    assert runs.waits() == [None, "turn"]
    (ready,) = runs.driver.observe().lanes.values()
    assert ready == second


def test_a_run_that_comes_back_for_another_attempt_keeps_its_turn(runs):
    runs.fire()
    runs.fire()

    runs.come_back()

    assert (runs.waits(), runs.slots()[0]["run_state"]) == (["time", "turn"], None)


def test_a_run_that_waits_may_be_canceled_out_of_turn(runs):
    first, second, third = (runs.fire() for _ in range(3))
    runs.driver.call(jobs.cancel(DEFAULT_TENANT, second, "not now"))

    assert runs.waits() == [None, "turn"]
    assert [slot["run_state"] for slot in runs.slots()] == [None, "canceled", None]
    assert {first, third} == set(runs.driver.observe().states()) - {second}


def test_a_schedule_that_may_run_more_lets_more_go(runs):
    for _ in range(4):
        runs.fire()
    runs.connection.execute("update mainspring.schedules set max_running = 3")

    runs.driver.run(clock_store.release_turns(runs.driver.connection))

    assert runs.waits() == [None, None, None, "turn"]


def test_the_jobs_of_a_deleted_schedule_still_run_one_after_the_other(runs):
    for _ in range(3):
        runs.fire()
    runs.connection.execute("delete from mainspring.schedules")
    left = "select waits_for from mainspring.jobs order by job_id"

    runs.succeed()

    assert runs.driver.execute(left) == [(None,), ("turn",)]


def test_a_job_whose_turn_has_come_wakes_an_idle_worker(runs):
    runs.fire()
    runs.fire()
    runs.connection.execute("listen mainspring")

    cancel(runs)

    (message,) = runs.connection.notifies(timeout=10, stop_after=1)
    assert message.payload == "ready:a"


# Another try by hand


def test_a_retried_run_opens_its_slot_again(runs):
    job_id = runs.fire()
    fail(runs)
    runs.driver.call(jobs.retry(DEFAULT_TENANT, job_id))
    (slot,) = runs.slots()
    assert (slot["run_state"], slot["started_at"], slot["finished_at"]) == (None, None, None)

    runs.succeed()

    assert runs.slots()[0]["run_state"] == "succeeded"


def test_a_retried_run_waits_while_another_is_live(runs):
    job_id = runs.fire()
    fail(runs)
    runs.fire()

    runs.driver.call(jobs.retry(DEFAULT_TENANT, job_id))

    assert runs.waits() == ["turn", None]
    runs.succeed()
    assert runs.waits() == [None]


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_retried_run_is_counted_as_it_ends_in_the_end(runs, is_counted):
    job_id = runs.fire()
    fail(runs)
    if is_counted:
        runs.count()
    runs.driver.call(jobs.retry(DEFAULT_TENANT, job_id))
    assert (runs.status()["total_runs"], runs.status()["failed_runs"]) == (0, 0)

    runs.succeed()

    status = runs.status()
    assert (status["total_runs"], status["success_rate_percent"]) == (1, 100)
    runs.count()
    assert runs.status()["success_rate_percent"] == 100


# Runs that go on for too long


def close(runs: Runs) -> int:
    terms: Row = {"limit": 10}
    return len(runs.driver.run(clock_store.overdue_runs(runs.driver.connection, **terms)))


@pytest.fixture
def overdue(runs: Runs) -> Runs:
    """One run has gone on for longer than its schedule allows, another waits."""
    runs.connection.execute("update mainspring.schedules set run_timeout = '1 minute'")
    runs.fire()
    runs.fire()
    runs.started.append(runs.begin())
    runs.connection.execute(
        "update mainspring.jobs set started_at = now() - interval '61 seconds'"
        " where state = 'running'"
    )
    return runs


def test_a_run_that_goes_on_for_too_long_is_closed_and_the_next_may_start(overdue):
    assert close(overdue) == 1

    closed, following = overdue.slots()
    assert (closed["run_state"], round(closed["seconds"])) == ("timed_out", 61)
    assert closed["reason"] == "it ran longer than the 00:01:00 its schedule allows"
    assert closed["message"] == closed["reason"]
    assert following["run_state"] is None
    assert overdue.waits() == [None, None]


def test_the_job_of_a_closed_run_is_asked_to_stop(overdue):
    close(overdue)

    asked = attempts.cancel_requests(overdue.driver.connection, overdue.worker_id)
    assert [report for report, _ in overdue.driver.run(asked)] == overdue.started


def test_a_closed_run_stays_closed_however_its_job_ends(overdue):
    close(overdue)
    ((job_id, fence),) = overdue.started
    reports = Successes([job_id], [fence], [0], [SECOND], [None])
    overdue.driver.run(
        attempts.finish_succeeded(overdue.driver.connection, overdue.worker_id, reports)
    )

    assert [slot["run_state"] for slot in overdue.slots()] == ["timed_out", None]
    assert (close(overdue), overdue.status()["failed_runs"]) == (0, 1)


def test_a_run_within_its_time_is_left_alone(overdue):
    overdue.connection.execute(
        "update mainspring.jobs set started_at = now() - interval '59 seconds'"
        " where state = 'running'"
    )

    assert (close(overdue), overdue.slots()[0]["run_state"]) == (0, None)


# Figures


def test_a_schedule_that_has_never_run_has_no_figures(runs):
    status = runs.status()

    assert (status["total_runs"], status["success_rate_percent"]) == (0, None)
    assert (status["last_run_at"], status["last_run_success"]) == (None, None)
    assert (status["average_seconds"], status["average_lateness_seconds"]) == (None, None)
    assert status["next_run_at"] is None


@pytest.mark.parametrize("is_counted", [True, False])
def test_the_success_rate_counts_runs_and_never_skips(runs, is_counted):
    runs.connection.execute("update mainspring.schedules set overlap = 'skip'")
    for finish in (succeed, fail, succeed):
        runs.fire()
        runs.connection.execute("select mainspring.trigger_scheduled_job('tick')")
        finish(runs)
    if is_counted:
        runs.count()

    status = runs.status()
    assert (status["total_runs"], status["successful_runs"], status["failed_runs"]) == (3, 2, 1)
    assert (float(status["success_rate_percent"]), status["skipped_slots"]) == (66.7, 3)
    assert status["last_run_success"] is True


@pytest.mark.parametrize("counted", [0, 1, 2])
def test_the_last_run_is_the_one_that_ended_last(runs, counted):
    for number, finish in enumerate((succeed, fail)):
        runs.fire()
        finish(runs)
        if number < counted:
            runs.count()

    status = runs.status()
    assert status["last_run_success"] is False
    assert status["last_run_at"] == support.schedule(runs.connection)["last_enqueued_at"]


def last(runs: Runs, run_state: str, seconds: int) -> None:
    runs.connection.execute(
        "update mainspring.slots set finished_at = started_at + %s * interval '1 second'"
        " where run_state = %s",
        (seconds, run_state),
    )


def test_counting_changes_nothing_that_is_told(runs):
    for finish in (succeed, fail, cancel):
        runs.fire()
        finish(runs)
    last(runs, "failed", 2)
    last(runs, "succeeded", 5)
    before = runs.status()

    runs.count()

    assert runs.status() == before
    uncounted = "select from mainspring.slots where run_state is distinct from counted_as"
    assert runs.driver.execute(uncounted) == []


def test_a_run_is_live_and_not_yet_counted(runs):
    runs.fire()

    assert (runs.status()["total_runs"], runs.status()["last_run_success"]) == (0, None)


def test_durations_are_told_in_seconds(runs):
    for finish in (succeed, fail):
        runs.fire()
        finish(runs)
    last(runs, "succeeded", 2)
    last(runs, "failed", 4)

    status = runs.status()
    assert (status["average_seconds"], status["worst_seconds"]) == (3, 4)
    assert [slot["seconds"] for slot in runs.slots()] == [2, 4]


def test_a_next_run_that_is_not_computed_yet_is_not_shown(runs):
    assert runs.status()["next_run_at"] is None

    runs.connection.execute("update mainspring.schedules set run_at = '2030-01-01Z'")

    assert runs.status()["next_run_at"].year == 2030


def test_a_slot_is_shown_with_its_schedule_and_lateness(runs):
    job_id = runs.fire()
    runs.connection.execute(
        "update mainspring.slots set fired_at = scheduled_for + interval '5 seconds'"
    )

    (slot,) = runs.slots()
    shown: Row = {"tenant_id": "default", "name": "tick", "outcome": "enqueued"}
    shown |= {"trigger": "manual", "missed": 0, "job_id": job_id, "lateness_seconds": 5}
    assert slot.items() >= shown.items()
