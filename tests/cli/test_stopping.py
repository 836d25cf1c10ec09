"""How a process of several roles stops: no more schedules, no more claims, the drain, then HTTP."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import httpx
import psycopg
import pytest

from mainspring.services import tokens
from mainspring.testing import bind
from tests.support import reading
from tests.support.processes import WorkerProcess, says
from tests.support.waiting import wait_until

SLOW_APP = """
import asyncio
from pathlib import Path

from mainspring import Mainspring

app = Mainspring()

@app.schedule("@every 1s", name="tick", payload={"name": "tick"}, overlap="queue")
@app.job(queue="ticks")
async def greet(name: str) -> str:
    return f"Hello, {name}!"

@app.job(queue="slow")
async def count(ctx, until: str) -> str:
    number = 0
    while not Path(until).exists():
        number += 1
        ctx.progress(number)
        await asyncio.sleep(0.05)
    return "counted"
"""
Enqueue = Callable[[], int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `slow:app` is; its job counts until there is a file `enough`."""
    (tmp_path / "slow.py").write_text(SLOW_APP)
    return tmp_path


@pytest.fixture
def url(database_url: str) -> dict[str, str]:
    return {"MAINSPRING_DATABASE_URL": database_url, "MAINSPRING_DEFAULT_SCHEDULES": "false"}


@pytest.fixture
def counting(command, connection, folder) -> Enqueue:
    """Enqueues the job that counts, and waits until it does; its id."""

    def enqueue() -> int:
        made = command("enqueue", "count", f'{{"until": "{folder / "enough"}"}}')
        job_id = int(made.stdout.split()[-1])
        wait_until(lambda: progress(connection, job_id), what="the job counts")
        return job_id

    return enqueue


def progress(connection: psycopg.Connection, job_id: int) -> float:
    row = reading.job(connection, job_id)["progress"]
    return float(row["current"]) if row else 0


def slots(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from mainspring.slots").fetchone()
    assert row is not None
    return int(row[0])


class Api:
    """The API of `mainspring up`, for an operator."""

    def __init__(self, up: WorkerProcess, database_url: str) -> None:
        from examples import hello

        with bind(hello.app, database_url):
            making = tokens.create(hello.app.database, "a reader", "operator", tenant_id=None)
            token = hello.app.blocking(making).text
        address = re.search(r"http://[0-9.]+:[0-9]+", up.log)
        assert address is not None, up.log
        self._client = httpx.Client(
            base_url=f"{address[0]}/api/v1", headers={"Authorization": f"Bearer {token}"}
        )

    def job(self, job_id: int) -> dict[str, Any]:
        answer = self._client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def stream(self, job_id: int) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """The events of a job's stream, by name and data."""
        with self._client.stream("GET", f"/jobs/{job_id}/stream", timeout=30) as answer:
            assert answer.status_code == 200
            yield _events(answer.iter_lines())

    def close(self) -> None:
        self._client.close()


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def test_a_worker_with_a_scheduler_needs_no_server(start, connection, folder, url):
    worker = start("worker", "--app", "slow:app", "--with-scheduler", cwd=folder, **url)

    wait_until(
        lambda: reading.states(connection).get("succeeded"), 30, "a slot has fired and its job ran"
    )
    assert worker.stop() == 0
    for event in ("worker_started", "worker_stopped", "scheduler_started", "scheduler_stopped"):
        assert worker.log.count(event) == 1
    assert "http://" not in worker.log
    assert "fires the schedules of this database; the app declares tick" in worker.log


def test_http_answers_until_the_drain_is_over(
    start, connection, folder, url, counting, database_url
):
    up = start("up", "--app", "slow:app", "--port", "0", cwd=folder, **url)
    says(up, "worker_started")
    api, job_id = Api(up, database_url), counting()
    up.signal(SIGTERM)
    says(up, "scheduler_stopped")
    fired = slots(connection)
    seen = api.job(job_id)["progress"]["current"]

    # A slot would be due within these two seconds.
    wait_until(lambda: api.job(job_id)["progress"]["current"] > seen + 40, 30, "it counts on")

    assert slots(connection) == fired
    (folder / "enough").touch()
    assert up.exit_code() == 0
    api.close()
    assert reading.job(connection, job_id)["state"] == "succeeded"
    order = ("scheduler_stopped", "worker_stopping", "worker_stopped", "server_stopped")
    assert re.findall("|".join(order), up.log) == list(order)


def test_streams_follow_the_last_jobs_to_their_end(
    start, connection, folder, url, counting, database_url
):
    up = start("up", "--app", "slow:app", "--port", "0", cwd=folder, **url)
    says(up, "worker_started")
    api, job_id = Api(up, database_url), counting()

    with api.stream(job_id) as early:
        next(early)
        up.signal(SIGTERM)
        says(up, "worker_stopping")
        with api.stream(job_id) as late:
            next(late)
            (folder / "enough").touch()
            told = [list(early), list(late)]

    assert up.exit_code() == 0
    api.close()
    for events in told:
        assert [name for name, _ in events[-2:]] == ["job", "end"]
        assert events[-2][1]["job"]["state"] == "succeeded"


def test_a_server_alone_stops_while_someone_watches(start, command, folder, url, database_url):
    server = start("server", "--port", "0", cwd=folder, **url)
    says(server, "Ctrl-C")
    job_id = int(command("enqueue", "hello", '{"name": "Ann"}').stdout.split()[-1])
    api = Api(server, database_url)

    with api.stream(job_id) as events:
        next(events)
        server.signal(SIGTERM)
        assert server.exit_code(4) == 0
        assert list(events) == []
    api.close()


def test_a_second_signal_stops_at_once(start, connection, folder, url, counting):
    up = start("up", "--app", "slow:app", "--port", "0", cwd=folder, **url)
    says(up, "worker_started")
    job_id = counting()
    up.signal(SIGTERM)
    says(up, "Stopping: waiting up to 30 s for 1 running job; press Ctrl-C again to stop at once.")

    up.signal(SIGTERM)

    assert up.exit_code(10) == 0
    assert "Stopping at once; running jobs are handed back." in up.log
    assert reading.job(connection, job_id)["state"] == "queued"


def test_a_worker_whose_output_nobody_reads_stops_as_any_other(database_url, tmp_path):
    log = tmp_path / "worker.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "mainspring", "worker", "--database-url", database_url],
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as worker,
    ):
        try:
            wait_until(lambda: "worker_started" in log.read_text())
            assert worker.stdout is not None
            worker.stdout.close()
            worker.send_signal(SIGTERM)

            assert worker.wait(20) == 0
        finally:
            worker.kill()
    assert "Traceback" not in log.read_text()
    assert "worker_stopped" in log.read_text()
