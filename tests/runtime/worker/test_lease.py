"""A worker holds its jobs only as long as it makes progress, whatever hangs."""

from collections.abc import Iterator
from functools import partial
from signal import SIGCONT, SIGSTOP

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.types import JobId
from tests.support import apps, reading
from tests.support.processes import StartWorker, WorkerProcess, says, worker_of
from tests.support.waiting import wait_until

LEASE = 2.0
CLAIM = 4711
# A claim that waits in the server after it has taken its job, and is not committed.
HELD_CLAIM = f"""
create function public.hold_claim() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared({CLAIM});
    return null;
end $$;
create trigger hold_claim after update on mainspring.jobs
    for each row when (new.state = 'running') execute function public.hold_claim();
"""
OPEN_CLAIMS = """
select count(*) from pg_stat_activity
 where application_name = 'mainspring claim' and state = 'idle in transaction'
   and datname = current_database()
"""
ORPHAN = """
update mainspring.jobs set state = 'running', worker_id = %s, fence = nextval('mainspring.fences'),
                           started_at = now(), attempt = 1
 where job_id = %s
"""
DONE_WITH = """
insert into mainspring.workers
    (worker_id, expires_at, recovered_at, pid, concurrency, name, host, process_identity, queues,
     version)
values (%s, now(), now(), 0, 1, 'gone', 'gone', '', '{}', '1')
"""
SURVIVORS = "select count(*) from mainspring.workers where survived"

Blocked = tuple[JobId, list[JobId]]


def count(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def is_waited_for(connection: psycopg.Connection) -> bool:
    """Whether someone waits for an advisory lock."""
    query = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    return count(connection, query) > 0


def test_a_claim_that_is_open_when_the_worker_stops_answering_is_given_up_within_the_lease(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    sleeper = start_worker(lease_seconds=LEASE)
    old_id = sleeper.started(connection)
    pause_in_claim(connection, sleeper)
    job_id = apps.record.enqueue(number=1).id
    wait_until(lambda: is_waited_for(connection), 10, "the claim waits")
    sleeper.signal(SIGSTOP)
    connection.execute("select pg_advisory_unlock(%s)", (CLAIM,))
    other = start_worker(lease_seconds=LEASE)

    wait_until(lambda: has_succeeded(connection, job_id), 15, "another runs it")
    assert count(connection, OPEN_CLAIMS) == 0
    wait_until(lambda: worker_of(connection, sleeper.pid) is None)
    sleeper.signal(SIGCONT)
    new_id = wait_until(lambda: worker_of(connection, sleeper.pid), 10)

    assert new_id != old_id
    assert [note["pid"] for note in reading.notes(connection, "ran")] == [other.pid]
    assert reading.statuses(connection, job_id) == ["succeeded"]
    assert count(connection, "select count(*) from mainspring.jobs where state = 'running'") == 0


def pause_in_claim(connection: psycopg.Connection, worker: WorkerProcess) -> None:
    """Make the next claim of an idle worker wait for a lock that this connection holds."""
    first = apps.do_nothing.enqueue(number=0).id
    wait_until(lambda: has_succeeded(connection, first), 10)
    connection.execute(HELD_CLAIM)
    connection.execute("select pg_advisory_lock(%s)", (CLAIM,))


@pytest.mark.parametrize("is_known", [True, False], ids=["done with", "without a row"])
def test_a_job_that_is_left_with_a_worker_nobody_looks_at_is_recovered_at_once(
    shared_app: Mainspring,
    connection: psycopg.Connection,
    start_worker: StartWorker,
    is_known: bool,
):
    start_worker().started(connection)
    for worker_id in (1_000_000, 1_000_001):  # A worker that has just started might look anyway.
        if is_known:
            connection.execute(DONE_WITH, (worker_id,))

        with connection.transaction():  # So that nobody takes the job before.
            job_id = apps.record.options(connection=connection).enqueue(number=1).id
            connection.execute(ORPHAN, (worker_id, job_id))

        wait_until(partial(has_succeeded, connection, job_id), 5)
        assert reading.statuses(connection, job_id) == ["lost", "succeeded"]


def has_succeeded(connection: psycopg.Connection, job_id: int) -> bool:
    return reading.state(connection, job_id) == "succeeded"


@pytest.fixture
def blocked(shared_app: Mainspring, connection: psycopg.Connection) -> Iterator[Blocked]:
    """A job that blocks the event loop of the worker that takes it, before 50 others."""
    connection.execute("select pg_advisory_lock(%s)", (apps.BLOCKED,))
    blocker = apps.block_the_loop.enqueue().id
    others = shared_app.enqueue_many(apps.record, [{"number": n} for n in range(50)])
    yield blocker, others
    connection.execute("select pg_advisory_unlock_all()")


def are_done(connection: psycopg.Connection, job_ids: list[JobId]) -> bool:
    row = connection.execute(
        "select count(*) from mainspring.jobs_history where job_id = any (%s)", (job_ids,)
    ).fetchone()
    return row == (len(job_ids),)


def test_a_handler_that_blocks_the_event_loop_costs_the_others_a_moment_and_the_worker_its_lease(
    connection: psycopg.Connection, start_worker: StartWorker, blocked: Blocked
):
    blocker, others = blocked
    victim = start_worker(lease_seconds=LEASE)
    wait_until(lambda: reading.notes(connection, "blocked"), 30)
    old_id = worker_of(connection, victim.pid)
    helper = start_worker(lease_seconds=LEASE)

    wait_until(lambda: are_done(connection, others), 10, "another runs what had not begun")
    wait_until(lambda: has_succeeded(connection, blocker), 10, "and the blocker")
    connection.execute("select pg_advisory_unlock(%s)", (apps.BLOCKED,))
    new_id = wait_until(lambda: worker_of(connection, victim.pid), 10)

    assert new_id != old_id
    assert count(connection, SURVIVORS) == 0, "a handler that hangs is a suspect"
    assert {note["pid"] for note in reading.notes(connection, "ran")} == {helper.pid}
    assert len(reading.notes(connection, "ran")) == len(others)
    assert reading.statuses(connection, blocker) == ["lost", "succeeded"]
    (line,) = [line for line in victim.log.splitlines() if "worker_stalled" in line]
    assert "block_the_loop" in line
    assert f"job_id={blocker}" in line
    assert "handed_back=50" in line


def test_a_block_shorter_than_the_lease_costs_nothing_but_the_hand_back(
    connection: psycopg.Connection, start_worker: StartWorker, blocked: Blocked
):
    blocker, others = blocked
    victim = start_worker(lease_seconds=8)
    says(victim, "worker_stalled")
    old_id = worker_of(connection, victim.pid)

    connection.execute("select pg_advisory_unlock(%s)", (apps.BLOCKED,))

    wait_until(lambda: are_done(connection, [blocker, *others]), 10)
    assert worker_of(connection, victim.pid) == old_id
    assert reading.statuses(connection, blocker) == ["succeeded"]
    assert len(reading.notes(connection, "ran")) == len(others)
    assert all(reading.statuses(connection, job_id) == ["succeeded"] for job_id in others)
