"""JSON that is nested very deeply: refused as such, wherever it is sent."""

from typing import Any

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api

MOST = 200
JOBS = {"definition": "work"}
# A body of each request that takes JSON of any shape; `null` stands for the deep value.
BODIES = {
    "/jobs": '{"definition": "work", "payload": {"a": null}}',
    "/jobs/many": '{"definition": "work", "payloads": [{"a": null}]}',
    "/jobs/1/retry": '{"payload": {"a": null}}',
    "/events": '{"name": "e", "context": {"a": null}}',
    "/schedules": '{"name": "s", "definition": "work", "cron": "@daily", "payload": {"a": null}}',
    "/triggers": '{"name": "t", "event": "e", "definition": "work", "payload": {"a": null}}',
    "/flows": '{"name": "f", "steps": [{"step": "a", "definition": "work", "payload": null}]}',
    "/definitions": '{"key": "d", "arg_schema": {"a": null}}',
    "/tenants": '{"name": null}',
}
REPORTS = {
    "progress": '"current": 1, "data": null',
    "checkpoint": '"checkpoint": null',
    "complete": '"result": null',
    "fail": '"error": "no", "extra": null',
}


def nested(depth: int, kind: str) -> str:
    return "[" * depth + "]" * depth if kind == "list" else '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("depth", [MOST, 3000])
@pytest.mark.parametrize("path", BODIES)
async def test_a_deep_body_is_refused(api: Api, path: str, depth: int, kind: str):
    body = BODIES[path].replace("null", nested(depth, kind))

    answer = await api.ask("POST", path, content=body.encode())

    assert answer.status_code == 422, answer.text
    assert "nested more than" in answer.json()["detail"]


@pytest.mark.parametrize("depth", [MOST, 255, 3000])
@pytest.mark.parametrize("report", REPORTS)
async def test_a_deep_report_is_refused(
    api: Api, connection: psycopg.Connection, report: str, depth: int
):
    at, fence = await claimed(api)
    body = f'{{"fence": "{fence}", {REPORTS[report].replace("null", nested(depth, "object"))}}}'

    answer = await api.ask("POST", f"{at}/{report}", role=Role.WORKER, content=body.encode())

    assert answer.status_code == 422, answer.text
    assert "nested more than 200 levels" in answer.json()["detail"]


@pytest.mark.parametrize("report", ["progress", "checkpoint", "complete"])
async def test_a_report_that_is_just_not_too_deep_is_kept_and_can_be_read(api: Api, report: str):
    at, fence = await claimed(api)
    body = f'{{"fence": "{fence}", {REPORTS[report].replace("null", nested(MOST - 1, "object"))}}}'

    answer = await api.ask("POST", f"{at}/{report}", role=Role.WORKER, content=body.encode())
    job = await api.get("/jobs/1")

    assert answer.status_code < 300, answer.text
    assert job.status_code == 200
    assert nested(MOST - 1, "object") in job.text


@pytest.mark.parametrize("depth", [260, 1000, 3000])
async def test_what_plain_sql_nests_deeply_can_be_listed_and_claimed_around(
    api: Api, connection: psycopg.Connection, depth: int
):
    payload = f'{{"a": {nested(depth, "list")}}}'
    connection.execute("select mainspring.enqueue('work', %s::jsonb)", (payload,))

    listed = await api.get("/jobs")
    included = await api.get("/jobs?include=payload")
    job = await api.get("/jobs/1")

    assert listed.status_code == 200
    assert included.status_code == 422
    assert job.status_code == 422
    assert "nested too deeply" in job.json()["detail"]


async def claimed(api: Api) -> tuple[str, str]:
    """The path of a claimed job for its worker, and the fence."""
    await api.post("/jobs", JOBS)
    worker: dict[str, Any] = {"name": "w", "queues": ["default"]}
    answer = await api.post("/work/workers", worker, role=Role.WORKER)
    at = f"/work/workers/{answer.json()['worker_id']}"
    asked = {"definitions": ["work"], "limit": 1}
    (job,) = (await api.post(f"{at}/claim", asked, role=Role.WORKER)).json()["jobs"]
    return f"{at}/jobs/{job['job_id']}", job["fence"]
