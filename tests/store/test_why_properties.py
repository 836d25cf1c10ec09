"""Whatever holds a live job up: there is a reason, and once the first one is gone another holds it
up, or the job goes on."""

import random
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from mainspring.domain.types import JobState
from tests.store.test_why import add_worker, claim, why
from tests.support.databases import undone
from tests.support.rows import insert, insert_definition, insert_job

DRAWS = 40
MOST_REASONS = 12

# What takes a reason away, for real; those of `soon` and of what ends the job are in `remove`.
REMOVALS: Mapping[str, str] = {
    "approval": "select mainspring.approve(%(job_id)s)",
    "parents": (
        "update mainspring.jobs set state = 'queued', waits_for = null where job_id = %(job_id)s"
    ),
    "parent_failed": "select mainspring.retry(parent_id) from mainspring.dependencies"
    " where job_id = %(job_id)s",
    "delay": "update mainspring.jobs set scheduled_for = now() where job_id = %(job_id)s",
    "backoff": "update mainspring.jobs set scheduled_for = now() where job_id = %(job_id)s",
    "turn": "delete from mainspring.jobs where schedule_id is not null and job_id <> %(job_id)s",
    "limit_zero": "select mainspring.set_limit('mail', 9)",
    "limit_places": "select mainspring.set_limit('mail', 9)",
    "rate": "delete from mainspring.buckets",
    "tenant_cap": "update mainspring.tenants set max_running = null",
    "set_aside": "update mainspring.set_aside set again_at = now()",
    "queue_paused": "select mainspring.resume_queue('default')",
    "behind_priority": "delete from mainspring.jobs where priority = 1",
    "behind": "delete from mainspring.jobs where job_id < %(job_id)s and state = 'queued'",
    "places_full": "update mainspring.workers set concurrency = 9",
    "stopping": "select mainspring.settle_cancel(%(job_id)s)",
}


def draw(connection: psycopg.Connection, chance: random.Random) -> int:
    """A live job, with some of all that may hold it up."""
    _draw_limit(connection, chance)
    _draw_workers(connection, chance)
    for priority in (1, 100):
        if chance.random() < 0.4:
            insert_job(connection, JobState.QUEUED, priority=priority)
    if chance.random() < 0.5:
        insert_job(connection, JobState.RUNNING, worker_id=7, limit_name="mail", limit_key="")
    job_id = _draw_job(connection, chance)
    if chance.random() < 0.3:
        connection.execute("select mainspring.pause_queue('default')")
    if chance.random() < 0.2:
        connection.execute("update mainspring.jobs set losses = 1 where job_id = %s", (job_id,))
    if chance.random() < 0.2:
        duty = chance.choice(["claim", "promote", "release_known"])
        connection.execute(
            "select mainspring.put_aside(%s, %s, 'why', array['1 hour'::interval])", (duty, job_id)
        )
    return job_id


def _draw_workers(connection: psycopg.Connection, chance: random.Random) -> None:
    for worker_id, is_stopping in ((7, False), (8, True)):
        if chance.random() < 0.6:
            places = chance.choice([1, 9])
            add_worker(connection, worker_id, concurrency=places, is_stopping=is_stopping)


def _draw_limit(connection: psycopg.Connection, chance: random.Random) -> None:
    concurrency = chance.choice([None, 0, 1, 9])
    rate = chance.choice([{}, {"rate_count": 1, "rate_period": "1 hour"}])
    insert(connection, "limits", name="mail", concurrency=concurrency, **rate)
    if chance.random() < 0.5:
        insert(
            connection, "buckets", limit_name="mail", limit_key="", full_at="tomorrow",
        )  # fmt: skip
    if chance.random() < 0.3:
        connection.execute("update mainspring.tenants set max_running = 1")


def _draw_job(connection: psycopg.Connection, chance: random.Random) -> int:
    match chance.choice(["ready", "time", "backoff", "limit", "approval", "parents", "handler"]):
        case "ready":
            return insert_job(connection, JobState.QUEUED)
        case "time" | "backoff" as kind:
            failures = int(kind == "backoff")
            return insert_job(
                connection, JobState.QUEUED, waits_for="time", scheduled_for="tomorrow",
                failures=failures,
            )  # fmt: skip
        case "limit":
            return insert_job(
                connection, JobState.QUEUED, waits_for="limit", limit_name="mail", limit_key=""
            )
        case "approval":
            job_id = insert_job(connection, JobState.AWAITING_APPROVAL)
            insert(connection, "approvals", job_id=job_id, tenant_id="default", needed=1)
            return job_id
        case "parents":
            state = chance.choice([JobState.FAILED, JobState.RUNNING])
            parent = insert_job(connection, state)
            job_id = insert_job(connection, JobState.BLOCKED)
            insert(connection, "dependencies", job_id=job_id, parent_id=parent, on_failure="wait")
            return job_id
        case _:
            return insert_job(connection, JobState.QUEUED, waits_for="handler")


def remove(connection: psycopg.Connection, job_id: int, code: str) -> None:
    if code in ("nobody_serves", "all_stopping"):
        add_worker(connection, 9)
    elif code == "handler":
        add_worker(connection, 10)
        insert(connection, "worker_schemas", worker_id=10, key="work")
    elif code == "soon":
        claim(connection, job_id)
    else:
        connection.execute(REMOVALS[code].encode(), {"job_id": job_id})


def facts(answer: Mapping[str, Any]) -> tuple[Any, Any]:
    return answer["state"], answer["reasons"][0]["code"]


def is_held(answer: Mapping[str, Any]) -> bool:
    return answer["state"] in ("queued", "blocked", "awaiting_approval")


@pytest.mark.parametrize("seed", range(4))
def test_the_first_reason_of_a_random_job_is_what_holds_it_up(database_url: str, seed: int):
    chance = random.Random(seed)
    for _ in range(DRAWS):
        with undone(database_url) as connection:
            insert_definition(connection, "work")
            job_id = draw(connection, chance)
            answer, seen = why(connection, job_id), list[str]()
            while is_held(answer):
                assert answer["reasons"], seen
                assert all(reason["sentence"] for reason in answer["reasons"]), answer
                code = answer["reasons"][0]["code"]
                remove(connection, job_id, code)
                before, answer = answer, why(connection, job_id)
                seen.append(code)
                assert facts(answer) != facts(before), seen
                assert len(seen) < MOST_REASONS, seen
            assert answer["state"] == "running"
