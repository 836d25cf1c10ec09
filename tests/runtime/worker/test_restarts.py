"""The database may go away at any moment and for any time."""

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGQUIT

import pytest

from mainspring.settings import load
from tests.support import apps
from tests.support.processes import StartWorker, worker_processes
from tests.support.servers import OwnServer, own_server
from tests.support.waiting import wait_until

LIVING = "select count(*) from mainspring.worker_status where is_alive"
LISTENING = "select count(*) from pg_stat_activity where application_name = 'mainspring listen'"
LIVE = "select count(*) from mainspring.jobs"
RUNNING = "select count(*) from mainspring.jobs where state = 'running'"
SUCCEEDED = "select count(*) from mainspring.jobs_history where state = 'succeeded'"
SUCCESSES = "select count(*) from mainspring.attempts where status = 'succeeded'"

pytestmark = pytest.mark.xdist_group("own server")


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server


@pytest.fixture
def start_worker(server: OwnServer, tmp_path: Path) -> Iterator[StartWorker]:
    apps.app.use(load(database_url=server.url))
    with worker_processes(server.url, tmp_path) as start:
        yield start
    apps.app.close()


def has_succeeded(server: OwnServer, count: int) -> bool:
    return server.number(SUCCEEDED) >= count


def test_ten_thousand_jobs_outlive_two_crashes_of_the_database(
    server: OwnServer, start_worker: StartWorker
):
    for _ in range(2):
        start_worker(lease_seconds=60)
    wait_until(lambda: server.number(LIVING) == 2, 30)
    job_ids = apps.app.enqueue_many(apps.nap, [{"seconds": 0.05}] * 10_000)

    for done, number in ((2000, SIGQUIT), (5000, SIGKILL)):
        wait_until(partial(has_succeeded, server, done), 30)
        server.take_down(number)
        server.bring_back()
        assert server.number(LIVE) > 0, "the crash came too late to matter"

    wait_until(lambda: server.number(LIVE) == 0, 30, "every job ends")
    assert server.number(SUCCEEDED) == server.number(SUCCESSES) == len(job_ids)


def test_an_idle_worker_hears_of_a_job_soon_after_an_outage(
    server: OwnServer, start_worker: StartWorker
):
    start_worker(lease_seconds=60)
    wait_until(lambda: server.number(LISTENING) == 1, 30)
    server.take_down(SIGQUIT)
    down_until = time.monotonic() + 1.5
    wait_until(lambda: time.monotonic() > down_until)
    server.bring_back()
    wait_until(lambda: server.number(LISTENING) == 1, 15)

    apps.nap.enqueue(seconds=0)

    wait_until(lambda: server.number(LIVE) == 0, 5, "the job is done")


def test_an_outage_is_logged_once_and_so_is_its_end(server: OwnServer, start_worker: StartWorker):
    worker = start_worker("--with-scheduler", lease_seconds=60)
    wait_until(lambda: server.number(LISTENING) == 2, 30)
    server.take_down(SIGQUIT)
    down_until = time.monotonic() + 1.5
    wait_until(lambda: time.monotonic() > down_until)
    server.bring_back()
    wait_until(lambda: server.number(LISTENING) == 2, 30)
    apps.nap.enqueue(seconds=0)
    wait_until(lambda: server.number(LIVE) == 0, 30, "the job is done")

    assert worker.stop() == 0
    logged = re.findall(r"\] (\w+) ", worker.log)
    assert logged.count("database_lost") == logged.count("database_back") == 1, worker.log
    assert "loop_failed" not in logged


def test_a_worker_leaves_in_time_though_the_database_is_away(
    server: OwnServer, start_worker: StartWorker
):
    worker = start_worker(drain_seconds=1)
    wait_until(lambda: server.number(LIVING) == 1, 30)
    apps.nap.enqueue(seconds=60)
    wait_until(lambda: server.number(RUNNING) == 1)
    server.take_down(SIGQUIT)
    stopped_at = time.monotonic()

    try:
        assert worker.stop() == 0
    finally:
        server.bring_back()

    assert time.monotonic() - stopped_at < 12
