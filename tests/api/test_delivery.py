"""Delivery over REST: settable on definitions, schedules and jobs, and kept for HTTP workers."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.runtime.maintenance import duties
from tests.support.api import Api
from tests.support.work import claim, define_remote, enqueue, register, state_of, told

FUNCTION = """
create function bare() returns jsonb language sql as $$ select '{"success": true}'::jsonb $$
"""
ONCE = {"delivery": "at_most_once"}


@pytest.fixture(autouse=True)
def remote(api: Api, connection: psycopg.Connection) -> None:
    define_remote(connection)


async def _statuses(api: Api, job_id: str) -> list[str]:
    answer = await api.get(f"/jobs/{job_id}/attempts")
    return [attempt["state"] for attempt in answer.json()["items"]]


async def test_a_definition_says_it(api: Api, connection: psycopg.Connection):
    connection.execute(FUNCTION)
    asked = {"key": "bare", "kind": "sql", "function": "public.bare", **ONCE}

    made = (await api.post("/definitions", asked)).json()
    changed = await api.ask("PATCH", "/definitions/bare", json={"delivery": "at_least_once"})
    back = (await api.ask("PATCH", "/definitions/bare", json=ONCE)).json()

    assert (made["delivery"], made["max_attempts"]) == ("at_most_once", 1)
    assert changed.json()["delivery"] == "at_least_once"
    assert (back["delivery"], back["max_attempts"]) == ("at_most_once", 1)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/definitions", {"key": "bare", "kind": "sql", "function": "public.bare"}),
        ("/schedules", {"name": "s", "definition": "work", "cron": "@daily"}),
        ("/jobs", {"definition": "work"}),
        ("/jobs/many", {"definition": "work", "payloads": [{}]}),
    ],
)
async def test_what_runs_at_most_once_has_one_attempt(
    api: Api, connection: psycopg.Connection, path: str, body: dict[str, Any]
):
    connection.execute(FUNCTION)

    refused = await api.post(path, {**body, **ONCE, "max_attempts": 3})
    unknown = await api.post(path, {**body, "delivery": "exactly_once"})
    made = await api.post(path, {**body, **ONCE, "max_attempts": 1})

    assert refused.status_code == 422, refused.text
    assert "max_attempts" in refused.text
    assert "must be 1 with delivery at_most_once" in refused.text
    assert unknown.status_code == 422
    assert made.status_code == 201, made.text


async def test_a_schedule_says_it_of_its_jobs(api: Api):
    body = {"name": "tick", "definition": "work", "cron": "@daily", **ONCE}
    made = (await api.post("/schedules", body)).json()
    fired = (await api.post("/schedules/tick/trigger", {})).json()
    job = (await api.get(f"/jobs/{fired['job_id']}")).json()

    assert made["delivery"] == "at_most_once"
    assert (job["delivery"], job["max_attempts"]) == ("at_most_once", 1)


async def test_a_job_says_it_in_lists_too(api: Api):
    job_id = await enqueue(api, **ONCE)

    (listed,) = (await api.get("/jobs")).json()["items"]

    assert (listed["id"], listed["delivery"]) == (job_id, "at_most_once")


async def _lose(api: Api, connection: psycopg.Connection, worker: str) -> None:
    connection.execute("update mainspring.workers set expires_at = now() - interval '1 second'")
    async with (await api.database.async_pool()).connection() as own:
        await duties.recover(own, max_losses=3)


async def _leave(api: Api, connection: psycopg.Connection, worker: str) -> None:
    await told(api, "DELETE", worker)


@pytest.mark.parametrize("end", [_lose, _leave])
async def test_what_an_http_worker_was_given_is_lost_with_it(
    api: Api, connection: psycopg.Connection, end: Callable[..., Any]
):
    job_id = await enqueue(api, **ONCE)
    worker = await register(api)
    await claim(api, worker)

    await end(api, connection, worker)

    assert (await state_of(api, job_id), await _statuses(api, job_id)) == ("dead_letter", ["lost"])
    assert await claim(api, await register(api)) == []


async def test_what_its_answer_never_reached_is_given_to_it_again(api: Api):
    await enqueue(api, **ONCE)
    worker = await register(api)
    (first,) = await claim(api, worker)

    (again,) = await claim(api, worker, held=[])
    done = {"fence": again["fence"]}
    answer = await told(api, "POST", f"{worker}/jobs/{again['job_id']}/complete", done)

    assert (first["job_id"], first["fence"]) == (again["job_id"], again["fence"])
    assert answer.status_code == 200


async def test_what_it_could_not_be_given_is_not_lost(api: Api, connection: psycopg.Connection):
    """The worker knows another definition, so the job was claimed and handed back."""
    job_id = await enqueue(api, **ONCE)
    worker = await register(api)
    assert await claim(api, worker, definitions=["other"]) == []

    await _lose(api, connection, worker)

    assert await state_of(api, job_id) == "queued"
    assert len(await claim(api, await register(api))) == 1


async def test_a_lost_job_is_retried_by_a_person(api: Api):
    job_id = await enqueue(api, **ONCE)
    worker = await register(api)
    await claim(api, worker)
    await told(api, "DELETE", worker)

    retried = await api.post(f"/jobs/{job_id}/retry", {}, role=Role.ADMIN)

    assert retried.json()["state"] == "queued"
    (job,) = await claim(api, await register(api))
    assert (job["job_id"], job["attempt"]) == (job_id, 2)
