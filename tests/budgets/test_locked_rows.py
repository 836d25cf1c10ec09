"""Requests that wait for a lock end soon, and keep no other tenant waiting."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from mainspring.db.request_pools import LOCK_SECONDS, REQUESTS
from mainspring.db.template_databases import fresh_database
from tests.budgets.bench import NEIGHBOUR, TENANT, Bench, bench
from tests.support.waiting import wait_until

MANY = REQUESTS + 5
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.fixture(scope="module")
def running(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("locks")
    with fresh_database(server_url) as url, bench(url, folder) as made:
        yield made


@contextmanager
def many(
    running: Bench, send: Callable[[], httpx.Response]
) -> Iterator[Callable[[], list[httpx.Response]]]:
    """Many requests at once, of which some wait for a lock by now; what they were answered."""
    with ThreadPoolExecutor(MANY) as threads:
        sent = [threads.submit(send) for _ in range(MANY)]
        wait_until(lambda: waiting(running) >= REQUESTS // 2, what="requests wait for the lock")
        yield lambda: [each.result() for each in sent]
        wait(sent)


def waiting(running: Bench) -> int:
    row = running.connection.execute(WAITING).fetchone()
    assert row is not None
    return int(row[0])


def neighbour_seconds(running: Bench) -> float:
    """How long another tenant waits for an answer."""
    token = running.tokens[NEIGHBOUR, "admin"]
    began = time.monotonic()
    running.client.get(
        "/api/v1/queues", headers={"Authorization": f"Bearer {token}"}
    ).raise_for_status()
    return time.monotonic() - began


@contextmanager
def locked(running: Bench, statement: str, *values: object) -> Iterator[None]:
    with psycopg.connect(running.connection.info.dsn) as holder:
        holder.execute(statement.encode(), values)
        yield
        holder.rollback()


def ensure_refused(answers: list[httpx.Response]) -> None:
    assert {answer.status_code for answer in answers} == {503}
    codes = {answer.json()["code"] for answer in answers}
    assert "lock_timeout" in codes
    assert codes <= {"lock_timeout", "connections_busy"}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}


def test_cancels_of_a_locked_job_keep_nobody_waiting(running: Bench):
    job_id = running.job()
    with (
        locked(running, "select from mainspring.jobs where job_id = %s for update", job_id),
        many(running, lambda: running.ask("POST", f"/jobs/{job_id}/cancel", {})) as answers,
    ):
        assert neighbour_seconds(running) < LOCK_SECONDS / 2
        ensure_refused(answers())

    assert running.ask("POST", f"/jobs/{job_id}/cancel", {}).status_code == 200


def test_requests_with_one_idempotency_key_keep_nobody_waiting(running: Bench):
    flow = {"name": "f", "steps": [{"step": "a", "definition": "work"}]}
    lock = "select pg_advisory_xact_lock(hashtextextended(%s, 0))"

    def send() -> httpx.Response:
        return running.ask("POST", "/flows", flow, **{"Idempotency-Key": "same"})

    with (
        locked(running, lock, f"mainspring.edit/reply/{TENANT}/same"),
        many(running, send) as answers,
    ):
        assert neighbour_seconds(running) < LOCK_SECONDS / 2
        ensure_refused(answers())

    assert send().status_code == 201
