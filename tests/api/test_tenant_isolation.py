"""Who may ask for what: every endpoint, as every role, and with another tenant's ids."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.services import tokens
from tests.support.api import Api

OAMV = {Role.OPERATOR, Role.ADMIN, Role.MEMBER, Role.VIEWER}
OAV = {Role.OPERATOR, Role.ADMIN, Role.VIEWER}
OAM = {Role.OPERATOR, Role.ADMIN, Role.MEMBER}
OA = {Role.OPERATOR, Role.ADMIN}
O = {Role.OPERATOR}  # noqa: E741 - the operator
OW = {Role.OPERATOR, Role.WORKER}
ALL = set(Role)

# Method, path after /api/v1, and who may. {job}, {flow} and {event} are ids of the tenant default,
# {name} is the name of something there.
MAY: dict[tuple[str, str], set[Role]] = {
    ("GET", "/jobs"): OAMV,
    ("POST", "/jobs"): OAM,
    ("POST", "/jobs/many"): OAM,
    ("POST", "/jobs/bulk"): OAM,
    ("GET", "/jobs/summary"): OAMV,
    ("GET", "/jobs/stream"): OAMV,
    ("GET", "/jobs/summary/stream"): OAMV,
    ("GET", "/jobs/{job_id}/stream"): OAMV,
    ("GET", "/jobs/{job_id}"): OAMV,
    ("DELETE", "/jobs/{job_id}"): OAM,
    ("GET", "/jobs/{job_id}/attempts"): OAMV,
    ("GET", "/jobs/{job_id}/why"): OAMV,
    ("POST", "/jobs/{job_id}/cancel"): OAM,
    ("POST", "/jobs/{job_id}/retry"): OAM,
    ("POST", "/jobs/{job_id}/approve"): OAM,
    ("POST", "/jobs/{job_id}/reject"): OAM,
    ("GET", "/queues"): OAMV,
    ("POST", "/queues/{name}/pause"): O,
    ("POST", "/queues/{name}/resume"): O,
    ("GET", "/definitions"): ALL,
    ("POST", "/definitions"): O,
    ("GET", "/definitions/{name}"): ALL,
    ("PATCH", "/definitions/{name}"): O,
    ("POST", "/definitions/{name}/activate"): O,
    ("POST", "/definitions/{name}/deactivate"): O,
    ("GET", "/figures"): OAV,
    ("GET", "/limits"): OAMV,
    ("GET", "/limits/{name}"): OAMV,
    ("PUT", "/limits/{name}"): O,
    ("DELETE", "/limits/{name}"): O,
    ("GET", "/retention"): OA,
    ("PUT", "/retention"): OA,
    ("DELETE", "/retention"): OA,
    ("GET", "/retention/preview"): OA,
    ("GET", "/errors"): OAV,
    ("GET", "/errors/{name}"): OAV,
    ("GET", "/schedules"): OAMV,
    ("POST", "/schedules"): OA,
    ("GET", "/schedules/{name}"): OAMV,
    ("PATCH", "/schedules/{name}"): OA,
    ("DELETE", "/schedules/{name}"): OA,
    ("POST", "/schedules/{name}/enable"): OA,
    ("POST", "/schedules/{name}/disable"): OA,
    ("POST", "/schedules/{name}/pause"): OA,
    ("POST", "/schedules/{name}/resume"): OA,
    ("POST", "/schedules/{name}/trigger"): OA,
    ("POST", "/schedules/{name}/backfill"): OA,
    ("GET", "/schedules/{name}/history"): OAMV,
    ("GET", "/schedules/{name}/preview"): OAMV,
    ("GET", "/events"): OAMV,
    ("POST", "/events"): OAM,
    ("GET", "/events/{event_id}"): OAMV,
    ("POST", "/events/{event_id}/replay"): OA,
    ("GET", "/triggers"): OAMV,
    ("POST", "/triggers"): OA,
    ("GET", "/triggers/{name}"): OAMV,
    ("PATCH", "/triggers/{name}"): OA,
    ("DELETE", "/triggers/{name}"): OA,
    ("POST", "/triggers/{name}/enable"): OA,
    ("POST", "/triggers/{name}/disable"): OA,
    ("POST", "/triggers/{name}/test"): OAMV,
    ("GET", "/flows"): OAMV,
    ("POST", "/flows"): OAM,
    ("GET", "/flows/{flow_id}"): OAMV,
    ("GET", "/flows/{flow_id}/jobs"): OAMV,
    ("POST", "/flows/{flow_id}/cancel"): OAM,
    ("POST", "/flows/{flow_id}/retry"): OAM,
    ("GET", "/approvals"): OAMV,
    ("GET", "/approvals/{job_id}"): OAMV,
    ("GET", "/tenants"): OAMV,
    ("POST", "/tenants"): O,
    ("GET", "/tenants/{name}"): OAMV,
    ("PATCH", "/tenants/{name}"): O,
    ("DELETE", "/tenants/{name}"): O,
    ("GET", "/people"): OA,
    ("POST", "/people"): OA,
    ("GET", "/people/{name}"): OA,
    ("PATCH", "/people/{name}"): OA,
    ("DELETE", "/people/{name}"): OA,
    ("POST", "/people/{name}/login"): OA,
    ("DELETE", "/people/{name}/sessions"): OA,
    ("GET", "/sessions"): ALL,
    ("DELETE", "/sessions/current"): ALL,
    ("DELETE", "/sessions/{session_id}"): ALL,
    ("GET", "/tokens"): OA,
    ("POST", "/tokens"): OA,
    ("GET", "/tokens/{name}"): OA,
    ("POST", "/tokens/{name}/revoke"): OA,
    ("GET", "/doctor"): O,
    ("POST", "/doctor/fix"): O,
    ("GET", "/workers"): OA,
    ("GET", "/processes"): OA,
    ("GET", "/status"): O,
    ("GET", "/audit"): OA,
    ("GET", "/me"): ALL,
    ("POST", "/work/register"): OW,
    ("POST", "/work/workers"): OW,
    ("DELETE", "/work/workers/{worker_id}"): OW,
    ("POST", "/work/workers/{worker_id}/heartbeat"): OW,
    ("POST", "/work/workers/{worker_id}/claim"): OW,
    ("POST", "/work/workers/{worker_id}/jobs/{job_id}/progress"): OW,
    ("POST", "/work/workers/{worker_id}/jobs/{job_id}/checkpoint"): OW,
    ("POST", "/work/workers/{worker_id}/jobs/{job_id}/complete"): OW,
    ("POST", "/work/workers/{worker_id}/jobs/{job_id}/fail"): OW,
    ("POST", "/work/workers/{worker_id}/jobs/{job_id}/canceled"): OW,
}
SHARED = ("/definitions", "/limits", "/queues", "/tenants", "/work")
# What belongs to one tenant, with the body that gets it past the checks.
OF_TENANT = [(method, path) for method, path in MAY if "{" in path and not path.startswith(SHARED)]
BODIES = {
    ("POST", "/jobs/bulk"): {"action": "cancel", "all": True, "dry_run": True},
    ("POST", "/jobs/{job_id}/reject"): {"reason": "no"},
    ("POST", "/schedules/{name}/backfill"): {
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-01-02T00:00:00Z",
    },
}


def endpoints(api: Api) -> set[tuple[str, str]]:
    return {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in api.app.openapi()["paths"].items()
        for method in methods
    }


async def test_the_table_names_every_endpoint(api: Api):
    # Health says nothing about a tenant, and answers anyone.
    assert endpoints(api) - {("GET", "/health")} == set(MAY)


def filled(path: str, ids: dict[str, str]) -> str:
    noun = path.split("/")[1]
    return path.format(name=ids.get(noun, "nobody"), **{key: ids[key] for key in ids if "_" in key})


async def furnish(api: Api, tenant: str) -> dict[str, str]:
    """One of each thing in a tenant."""
    query = {"params": {"tenant": tenant}}
    job = await api.post("/jobs", {"definition": "work", "approvals_needed": 1}, **query)
    flow = await api.post(
        "/flows", {"name": "two", "steps": [{"step": "a", "definition": "work"}]}, **query
    )
    event = await api.post("/events", {"name": "thing.happened"}, **query)
    await api.post(
        "/schedules", {"name": "nightly", "definition": "work", "cron": "0 2 * * *"}, **query
    )
    await api.post(
        "/triggers", {"name": "on-thing", "event": "thing.*", "definition": "work"}, **query
    )
    await api.post("/people", {"name": f"{tenant}-person", "role": "viewer"}, **query)
    await api.post("/tokens", {"name": f"{tenant}-token", "role": "viewer"}, **query)
    return {
        "job_id": job.json()["id"],
        "flow_id": flow.json()["id"],
        "event_id": event.json()["id"],
        "schedules": "nightly",
        "triggers": "on-thing",
        "people": f"{tenant}-person",
        "tokens": f"{tenant}-token",
        "definitions": "work",
        "limits": "none",
        "tenants": tenant,
        "worker_id": "999999999",
        "session_id": await session_of(api, f"{tenant}-person", tenant),
    }


async def session_of(api: Api, name: str, tenant: str) -> str:
    """The id of a session of the person."""
    await tokens.log_in(api.database, await tokens.open_login(api.database, name, tenant))
    asked = {"person": name, "tenant": tenant}
    return str((await api.get("/sessions", params=asked)).json()["items"][0]["id"])


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_may_what_the_table_says_and_nothing_else(api: Api, role: Role):
    ids = await furnish(api, "default")
    api.app.state.server.hub.close()  # Streams end at once.

    answers = {}
    for method, path in MAY:
        answer = await api.ask(
            method, filled(path, ids), role=role, json=BODIES.get((method, path), {})
        )
        answers[method, path] = answer.status_code
        assert answer.status_code < 500, (method, path, answer.text)

    forbidden = {endpoint for endpoint, status in answers.items() if status == 403}
    assert forbidden == {endpoint for endpoint, may in MAY.items() if role not in may}


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER, Role.VIEWER])
async def test_what_another_tenant_has_is_not_there(
    api: Api, role: Role, connection: psycopg.Connection
):
    ids = await furnish(api, "acme")
    api.app.state.server.hub.close()
    ids |= {"schedules": "acme-only", "triggers": "acme-only"}
    connection.execute(
        "update mainspring.schedules set name = 'acme-only' where tenant_id = 'acme'"
    )
    connection.execute("update mainspring.triggers set name = 'acme-only' where tenant_id = 'acme'")

    for method, path in OF_TENANT:
        if role not in MAY[method, path]:
            continue
        answer = await api.ask(
            method, filled(path, ids), role=role, json=BODIES.get((method, path), {})
        )
        assert answer.status_code == 404, (method, path, answer.text)
        asked = await api.ask(method, filled(path, ids), role=role, params={"tenant": "acme"})
        assert (asked.status_code, asked.json()["code"]) == (404, "tenant_not_found")


LISTS = ("/jobs", "/flows", "/events", "/schedules", "/triggers", "/approvals", "/queues")


async def test_an_operator_lists_what_all_tenants_have(api: Api):
    for tenant in ("default", "acme"):
        await furnish(api, tenant)

    for path in (*LISTS, "/people", "/tokens", "/audit"):
        found = (await api.get(path, params={"tenant": "*"})).json()["items"]
        assert {each["tenant"] for each in found} - {None} == {"default", "acme"}, path
        for role in MAY["GET", path] - {Role.OPERATOR}:
            answer = await api.get(path, params={"tenant": "*"}, role=role)
            assert (answer.status_code, answer.json()["code"]) == (404, "tenant_not_found")


async def test_an_operator_is_told_of_a_tenant_that_nobody_has_made(
    api: Api, connection: psycopg.Connection
):
    for path in (*LISTS, "/people", "/tokens", "/audit", "/jobs/summary", "/jobs/stream"):
        answer = await api.get(path, params={"tenant": "acmee"})
        assert (answer.status_code, answer.json()["code"]) == (404, "tenant_not_found"), path
        assert answer.json()["detail"] == "there is no tenant 'acmee'; did you mean 'acme'?"
    broken = await api.get("/jobs", params={"tenant": "ac\x00me"})
    assert (broken.status_code, broken.json()["code"]) == (422, "invalid_request")

    connection.execute("insert into mainspring.tenants (tenant_id) values ('acmee')")
    assert (await api.get("/jobs", params={"tenant": "acmee"})).json()["items"] == []


@pytest.mark.parametrize("path", ["/tokens", "/people"])
async def test_an_operator_is_made_in_no_tenant(api: Api, path: str):
    asked = {"name": "olga", "role": "operator"}

    refused = await api.post(path, asked, params={"tenant": "acme"})
    by_admin = await api.post(path, asked, role=Role.ADMIN)
    made = await api.post(path, asked)

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_option")
    assert refused.json()["detail"].startswith("tenant cannot be set for an operator")
    assert (by_admin.status_code, by_admin.json()["code"]) == (403, "forbidden")
    assert made.status_code == 201
    assert made.json().get("details", made.json())["tenant"] is None


async def pages(api: Api, path: str, **asked: str) -> list[object]:
    """All items of a list, one to a page."""
    items: list[object] = []
    cursor: dict[str, str] = {}
    for _ in range(20):
        answer = (await api.get(path, params={"limit": "1", **asked, **cursor})).json()
        items += answer["items"]
        if answer["next_cursor"] is None:
            return items
        cursor = {"cursor": answer["next_cursor"]}
    raise AssertionError(f"{path} goes round in circles")


async def test_the_pages_of_all_tenants_hold_everything_once(api: Api):
    for tenant in ("default", "acme", "default"):
        await furnish(api, tenant)

    for path in LISTS:
        if path != "/queues":
            whole = (await api.get(path, params={"tenant": "*"})).json()["items"]
            assert len(whole) > 1
            assert await pages(api, path, tenant="*") == whole, path
            own = [each for each in whole if each["tenant"] == "acme"]
            assert await pages(api, path, tenant="acme") == own, path


async def test_a_state_a_creator_and_a_summary_of_all_tenants(api: Api):
    jobs = {tenant: (await furnish(api, tenant))["job_id"] for tenant in ("default", "acme")}
    for tenant, job_id in jobs.items():
        await api.post(f"/jobs/{job_id}/cancel", params={"tenant": tenant})
    everywhere = {"tenant": "*"}

    canceled = await api.get("/jobs", params={**everywhere, "state": "canceled"})
    created = await api.get("/jobs", params={**everywhere, "created_by": "ops"})
    summary = (await api.get("/jobs/summary", params=everywhere)).json()

    assert {job["id"] for job in canceled.json()["items"]} == set(jobs.values())
    assert {job["tenant"] for job in created.json()["items"]} == {"default", "acme"}
    assert (summary["counts"]["canceled"], summary["counts"]["queued"]) == (2, 2)


async def test_what_is_one_thing_is_of_one_tenant(api: Api):
    ids = {"job_id": "7", "flow_id": "7", "event_id": "7"}
    for method, path in OF_TENANT:
        if path.startswith(("/people", "/tokens", "/sessions")):
            continue  # They are looked for in all tenants, unless one is named.
        answer = await api.ask(
            method, filled(path, ids), params={"tenant": "*"}, json=BODIES.get((method, path), {})
        )
        assert answer.status_code == 422, (method, path, answer.text)
        assert "name one tenant" in answer.json()["detail"]


async def test_nothing_is_created_in_all_tenants(api: Api):
    bodies: dict[str, object] = {
        "/jobs": {"definition": "work"},
        "/jobs/many": {"definition": "work", "payloads": [{}]},
        "/jobs/bulk": {"action": "cancel", "all": True},
        "/flows": {"name": "two", "steps": [{"step": "a", "definition": "work"}]},
        "/events": {"name": "thing.happened"},
        "/schedules": {"name": "nightly", "definition": "work", "cron": "0 2 * * *"},
        "/triggers": {"name": "on-thing", "event": "thing.*", "definition": "work"},
        "/people": {"name": "bob", "role": "viewer"},
        "/tokens": {"name": "bobs", "role": "viewer"},
    }
    for path, body in bodies.items():
        answer = await api.post(path, body, params={"tenant": "*"})
        assert answer.status_code == 422, (path, answer.text)
        assert "name one tenant" in answer.json()["detail"], answer.text


async def test_lists_hold_nothing_of_another_tenant(api: Api):
    await furnish(api, "acme")

    for path in LISTS:
        assert (await api.get(path, role=Role.ADMIN)).json()["items"] == []
    audited = (await api.get("/audit", role=Role.ADMIN)).json()["items"]
    assert {entry["tenant"] for entry in audited} == {"default"}
    people = (await api.get("/people", role=Role.ADMIN)).json()["items"]
    assert [person["name"] for person in people] == ["ann"]
    tenants = (await api.get("/tenants", role=Role.ADMIN)).json()["items"]
    assert [tenant["name"] for tenant in tenants] == ["default"]
