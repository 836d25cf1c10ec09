"""Who a job is created by over REST, and where it came from."""

from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.schedules import scheduling

STEP = {"step": "a", "definition": "work"}


def bodies(**given: Any) -> dict[str, dict[str, Any]]:
    """A request of every way to enqueue."""
    return {
        "/jobs": {"definition": "work", **given},
        "/jobs/many": {"definition": "work", "payloads": [{}], **given},
        "/flows": {"name": "f", "steps": [{**STEP, **given}]},
    }


@pytest.mark.parametrize("path", bodies())
async def test_a_member_enqueues_in_its_own_name_only(api: Api, path: str):
    forged = await api.post(path, bodies(created_by="admin-default")[path], role=Role.MEMBER)
    own = await api.post(path, bodies(created_by="member-default")[path], role=Role.MEMBER)

    assert (forged.status_code, forged.json()["code"]) == (403, "forbidden")
    assert own.status_code == 201, own.text
    (job,) = (await api.get("/jobs")).json()["items"]
    assert (job["created_by"], job["source"]) == ("member-default", "api")


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
@pytest.mark.parametrize("path", bodies())
async def test_an_admin_or_operator_enqueues_for_others(api: Api, path: str, role: Role):
    given = {"created_by": "member-default", "source": "checkout"}
    assert (await api.post(path, bodies(**given)[path], role=role)).status_code == 201

    (job,) = (await api.get("/jobs", role=Role.MEMBER)).json()["items"]

    assert (job["created_by"], job["source"]) == ("member-default", "checkout")


@pytest.mark.parametrize("creator", ["system:scheduler:x", "trigger:x", "job:7"])
@pytest.mark.parametrize("path", bodies())
async def test_nobody_enqueues_as_a_part_of_mainspring(api: Api, path: str, creator: str):
    refused = await api.post(path, bodies(created_by=creator)[path])

    assert refused.status_code == 422
    assert "must not start with system:, trigger: or job:" in refused.text


@pytest.mark.parametrize("role", [Role.VIEWER, Role.WORKER])
async def test_who_enqueues_nothing_enqueues_for_nobody(api: Api, role: Role):
    refused = await api.post("/jobs", bodies(created_by="member-default")["/jobs"], role=role)

    assert refused.status_code == 403


async def test_the_database_refuses_a_member_too(api: Api):
    """Whatever a server lets through."""
    statement = (
        "select mainspring.enter(sha256(%(text)s::bytea))",
        {"text": api.tokens["default", Role.MEMBER].encode()},
    )
    pool = await api.database.async_pool()
    async with pool.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(*statement)
        with pytest.raises(psycopg.Error, match="members enqueue in their own name only"):
            await connection.execute("select mainspring.enqueue('work', created_by => 'ann')")


@pytest.mark.parametrize("condition", [{}, {"condition_sql": "select true"}])
async def test_a_job_of_a_trigger_by_hand_is_created_by_its_schedule(
    api: Api, condition: dict[str, str]
):
    fields = {"name": "tick", "definition": "work", "cron": "@daily", **condition}
    await api.post("/schedules", fields)
    async with Mainspring(api.database.url) as app, scheduling(app):
        fired = (await api.post("/schedules/tick/trigger", {"wait": 10})).json()

    job = (await api.get(f"/jobs/{fired['job_id']}")).json()
    assert (job["created_by"], job["source"]) == ("system:scheduler:tick", "schedule")
    (entry,) = (await api.get("/audit?action=trigger&noun=schedule")).json()["items"]
    assert (entry["actor"], entry["subject"]) == ("ops", "tick")


async def test_a_list_shows_where_jobs_came_from_and_is_filtered_by_it(api: Api):
    steps = [STEP, {**STEP, "step": "b", "after": ["a"]}]
    flow = (await api.post("/flows", {"name": "f", "steps": steps})).json()
    await api.post("/schedules", {"name": "tick", "definition": "work", "cron": "@daily"})
    fired = (await api.post("/schedules/tick/trigger", {})).json()
    first, second = flow["job_ids"]["a"], flow["job_ids"]["b"]

    async def found(query: str) -> list[dict[str, Any]]:
        answer = await api.get(f"/jobs?{query}")
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    (child,) = await found(f"parent_id={first}")
    (run,) = await found("schedule=tick")
    assert [job["id"] for job in await found(f"flow_id={flow['id']}")] == [second, first]
    assert (child["id"], child["parent_ids"], child["flow_id"]) == (second, [first], flow["id"])
    assert (run["id"], run["schedule"]) == (fired["job_id"], "tick")
    assert run["definition_version"] == 1
    assert (await api.get("/jobs?flow_id=abc")).status_code == 422


async def test_the_relations_of_another_tenant_find_nothing(api: Api):
    flow = (await api.post("/flows", {"name": "f", "steps": [STEP]})).json()
    query = f"/jobs?flow_id={flow['id']}"

    stranger = await api.get(query, role=Role.ADMIN, tenant="acme")
    other_member = await api.get(query, role=Role.MEMBER)

    assert (stranger.json()["items"], other_member.json()["items"]) == ([], [])


async def test_a_bulk_operation_means_the_same_jobs(api: Api):
    flow = (await api.post("/flows", {"name": "f", "steps": [STEP]})).json()
    await api.post("/jobs", {"definition": "work", "source": "checkout"})
    await api.post("/jobs", {"definition": "work"})

    async def count(**asked: Any) -> int:
        body = {"action": "cancel", "filter": asked, "dry_run": True}
        return int((await api.post("/jobs/bulk", body)).json()["count"])

    assert await count(definition="work") == 3
    assert await count(flow_id=flow["id"]) == 1
    assert await count(source="checkout") == 1
    assert await count(parent_id="999") == 0
