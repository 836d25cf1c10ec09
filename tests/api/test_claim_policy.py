"""The claim policy over HTTP: rates, weights of tenants, and probation hold as for local workers.

Everything is a process of its own: the server, the workers that reach it over HTTP, and a local
worker of another queue, which grants limits and takes back the jobs of workers that died.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support import reading
from tests.support.api import Api
from tests.support.http_workers import DEADLY, HARMLESS, HttpWorker, server_process
from tests.support.processes import WorkerProcess, worker_processes
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

QUEUE = "remote"
# Two that die beside others, those that the job kills alone, and one that finishes the others.
MOST_LIVES = 8


@pytest.fixture
def token(api: Api) -> str:
    """An operator's, who works for all tenants."""
    return api.tokens["*", Role.OPERATOR]


@pytest.fixture
def server(database_url: str, token: str, tmp_path: Path) -> Iterator[str]:
    with server_process(database_url, tmp_path) as url:
        yield url


@pytest.fixture
def maintenance(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
) -> Iterator[WorkerProcess]:
    """A local worker that runs none of the jobs here."""
    with worker_processes(database_url, tmp_path) as start:
        worker = start("--queues", "default")
        worker.started(connection)
        yield worker


@pytest.fixture(autouse=True)
def definitions(api: Api, connection: psycopg.Connection) -> None:
    for key in (DEADLY, HARMLESS):
        connection.execute(
            "insert into mainspring.definitions (key, kind, queue) values (%s, 'python', %s)",
            (key, QUEUE),
        )


def enqueue(
    connection: psycopg.Connection, count: int, definition: str = HARMLESS, tenant: str = "default"
) -> None:
    connection.execute(
        "select mainspring.enqueue(%s, tenant => %s) from generate_series(1, %s)",
        (definition, tenant, count),
    )


def set_rate(connection: psycopg.Connection, count: int, seconds: float, burst: int = 1) -> None:
    connection.execute(
        "update mainspring.definitions set rate_count = %s, burst = %s,"
        " rate_period = make_interval(secs => %s) where key = %s",
        (count, burst, seconds, HARMLESS),
    )


@pytest.fixture
def register(server: str, token: str) -> Iterator[Callable[[], HttpWorker]]:
    """Registers workers, which are closed in the end."""
    with ExitStack() as workers:
        yield lambda: workers.enter_context(HttpWorker.registered(server, token, QUEUE))


# Rates


def test_a_rate_is_not_exceeded(
    connection: psycopg.Connection, register: Callable[[], HttpWorker], maintenance: WorkerProcess
):
    set_rate(connection, 10, seconds=1)
    enqueue(connection, 25)
    worker = register()

    done = 0
    while done < 25:
        for job in worker.claim(10, wait=5):
            worker.complete(job)
            done += 1

    starts = started_at(connection)
    # A token is taken a moment after the claim that is recorded as the start.
    assert starts[-1] - starts[0] > 24 * 0.1 - 0.1
    assert max(sum(since <= at < since + 0.9 for at in starts) for since in starts) <= 10


def test_a_rate_counts_starts_and_not_what_runs(
    connection: psycopg.Connection, register: Callable[[], HttpWorker], maintenance: WorkerProcess
):
    set_rate(connection, 20, seconds=1)
    enqueue(connection, 4)
    worker = register()

    running: list[str] = []
    while len(running) < 4:
        jobs = worker.claim(10, wait=5)
        assert jobs, f"only {len(running)} may run at once"
        running += [job["job_id"] for job in jobs]

    assert reading.states(connection) == {"running": 4}


def test_a_burst_starts_in_a_row_and_no_more(
    connection: psycopg.Connection, register: Callable[[], HttpWorker], maintenance: WorkerProcess
):
    set_rate(connection, 1, seconds=3600, burst=3)
    enqueue(connection, 5)
    worker = register()

    started: list[str] = []
    while len(started) < 3:
        for job in worker.claim(10, wait=5):
            worker.complete(job)
            started.append(job["job_id"])

    assert worker.claim(10, wait=1) == []
    assert reading.states(connection) == {"succeeded": 3, "queued": 2}


def started_at(connection: psycopg.Connection) -> list[float]:
    query = "select extract(epoch from started_at)::float from mainspring.attempts order by 1"
    return [row[0] for row in connection.execute(query)]


# Weights


@pytest.mark.parametrize("limit", [1, 5, 8])
def test_tenants_are_served_by_weight(
    connection: psycopg.Connection, register: Callable[[], HttpWorker], limit: int
):
    connection.execute("insert into mainspring.tenants (tenant_id, weight) values ('bell', 3)")
    for tenant in ("acme", "bell"):
        enqueue(connection, 60, tenant=tenant)
    workers = [register(), register()]

    served: Counter[str] = Counter()
    for number in range(40 // limit):
        jobs = workers[number % 2].claim(limit)
        served.update(job["tenant"] for job in jobs)

    assert served.total() == 40
    assert 29 <= served["bell"] <= 31


# Probation


def test_a_job_that_kills_its_worker_is_parked_and_the_others_succeed(
    connection: psycopg.Connection, server: str, token: str, maintenance: WorkerProcess
):
    enqueue(connection, 5)
    enqueue(connection, 1, DEADLY)
    enqueue(connection, 15)

    for _ in range(MOST_LIVES):
        with http_worker(server, token) as worker:
            wait_until(partial(is_over, connection, worker), 30)
        expire_leases(connection)
        if is_quiet(connection):
            break

    assert reading.states(connection) == {"dead_letter": 1, "succeeded": 20}
    job = connection.execute(
        "select last_error, losses, failures from mainspring.job_status where definition = %s",
        (DEADLY,),
    ).fetchone()
    assert job == ("its worker died while it ran nothing else (death 3 of 3)", 3, 0)


def suspect(connection: psycopg.Connection, job_id: str, seconds: float = 0, lost: int = 2) -> None:
    """The job was there when so many workers died, the last one so many seconds ago."""
    connection.execute(
        "update mainspring.jobs set suspected_at = now() - make_interval(secs => %s)"
        " where job_id = %s",
        (seconds, job_id),
    )
    connection.execute(
        "insert into mainspring.attempts (job_id, fence, worker_id, started_at, finished_at,"
        " number, status) select %s, number, 1, now(), now(), number, 'lost'"
        " from generate_series(1, %s) as number",
        (job_id, lost),
    )


def ids(jobs: Iterable[dict[str, Any]]) -> list[str]:
    return sorted((job["job_id"] for job in jobs), key=int)


def enqueued(connection: psycopg.Connection, count: int) -> list[str]:
    enqueue(connection, count)
    rows = connection.execute("select job_id from mainspring.jobs order by job_id").fetchall()
    return [str(row[0]) for row in rows][-count:]


def test_a_worker_that_has_nothing_gets_a_suspect_and_nothing_beside_it(
    connection: psycopg.Connection, register: Callable[[], HttpWorker]
):
    alone, *others = enqueued(connection, 3)
    suspect(connection, alone)
    worker, neighbour = register(), register()

    (job,) = worker.claim(3)

    assert job["job_id"] == alone
    assert worker.claim(3) == []
    assert ids(neighbour.claim(3)) == others
    worker.complete(job)
    assert reading.states(connection) == {"succeeded": 1, "running": 2}


def test_a_suspect_steps_aside_while_the_worker_has_other_jobs_but_not_for_ever(
    connection: psycopg.Connection, register: Callable[[], HttpWorker]
):
    worker = register()
    enqueue(connection, 1)
    (first,) = worker.claim(1)
    alone, *others = enqueued(connection, 3)

    suspect(connection, alone)
    (second,) = worker.claim(1)
    assert second["job_id"] == others[0]

    suspect(connection, alone, seconds=60)
    assert worker.claim(3) == [], "it gets no more until it is free"
    for job in (first, second):
        worker.complete(job)
    assert ids(worker.claim(3)) == [alone]


def test_suspects_that_lost_one_worker_are_handed_out_together(
    connection: psycopg.Connection, register: Callable[[], HttpWorker]
):
    jobs = enqueued(connection, 3)
    for job_id in jobs:
        suspect(connection, job_id, lost=1)

    assert ids(register().claim(3)) == jobs


def test_the_death_of_a_worker_with_several_jobs_is_no_loss_to_any(
    connection: psycopg.Connection,
    register: Callable[[], HttpWorker],
    maintenance: WorkerProcess,
):
    enqueue(connection, 2)
    assert len(register().claim(2)) == 2

    expire_leases(connection)

    suspects = "select losses from mainspring.jobs where suspected_at is not null"
    found = wait_until(lambda: connection.execute(suspects).fetchall(), 10)
    assert found == [(0,), (0,)]


@contextmanager
def http_worker(server: str, token: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.support.http_workers", server, token, QUEUE]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def expire_leases(connection: psycopg.Connection) -> None:
    """As if their leases had run out; whoever takes the jobs back sees nothing else of it."""
    connection.execute(
        "update mainspring.workers set expires_at = now() where process_identity like 'api:%'"
    )


def is_over(connection: psycopg.Connection, worker: "subprocess.Popen[bytes]") -> bool:
    return worker.poll() is not None or is_quiet(connection)


def is_quiet(connection: psycopg.Connection) -> bool:
    return not reading.states(connection).keys() & {"queued", "running"}
