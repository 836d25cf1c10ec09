"""What integrators rely on: whole jobs, the job in the way, tags of everything, pages of every
list."""

from typing import Any

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.rows import insert, insert_attempt


async def test_an_enqueue_answers_with_the_whole_job(api: Api):
    body = {"definition": "work", "payload": {"n": 7}, "tags": ["blue"], "dedupe_key": "k"}

    made = await api.post("/jobs", body)
    again = await api.post("/jobs", {**body, "on_duplicate": "existing"})

    job = (await api.get(f"/jobs/{made.json()['id']}")).json()
    assert made.json() == {"id": job["id"], "is_new": True, "job": job}
    assert (job["payload"], job["state"], job["tags"]) == ({"n": 7}, "queued", ["blue"])
    assert again.json() == {"id": job["id"], "is_new": False, "job": job}


async def test_a_whole_job_hides_its_secrets(api: Api, connection: psycopg.Connection):
    schema = '{"properties": {"password": {"type": "string", "writeOnly": true}}}'
    connection.execute(
        "insert into mainspring.definitions (key, kind, arg_schema)"
        " values ('log_in', 'python', %s)",
        (schema,),
    )

    made = await api.post("/jobs", {"definition": "log_in", "payload": {"password": "hunter2"}})

    assert made.status_code == 201, made.text
    assert "hunter2" not in made.text
    whole = (await api.get(f"/jobs/{made.json()['id']}")).json()
    assert made.json()["job"]["payload"] == whole["payload"]


async def test_a_member_does_not_see_the_job_of_someone_else_that_has_the_key(api: Api):
    body = {"definition": "work", "payload": {"n": 7}, "dedupe_key": "k"}
    first = await api.post("/jobs", body, role=Role.ADMIN)

    second = await api.post("/jobs", {**body, "on_duplicate": "existing"}, role=Role.MEMBER)

    assert second.json() == {"id": first.json()["id"], "is_new": False, "job": None}


async def test_a_duplicate_names_the_job_that_is_in_the_way(api: Api):
    body = {"definition": "work", "dedupe_key": "k"}
    first = (await api.post("/jobs", body)).json()["id"]

    refused = await api.post("/jobs", body)

    assert refused.status_code == 409
    problem = refused.json()
    assert (problem["code"], problem["job_id"], problem["errors"]) == ("duplicate_job", first, [])


async def test_a_conflict_of_idempotency_keys_names_the_job_too(api: Api):
    headers = {"Idempotency-Key": "i"}
    first = await api.post("/jobs", {"definition": "work"}, headers=headers)

    other = await api.post("/jobs", {"definition": "work", "payload": {"n": 1}}, headers=headers)

    assert other.json()["job_id"] == first.json()["id"]


async def test_many_jobs_are_enqueued_once_under_a_key(api: Api):
    body = {"definition": "work", "payloads": [{}, {}]}
    headers = {"Idempotency-Key": "many"}

    first = await api.post("/jobs/many", body, headers=headers)
    second = await api.post("/jobs/many", body, headers=headers)

    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len((await api.get("/jobs")).json()["items"]) == 2


@pytest.mark.parametrize(
    ("method", "path", "body", "faults"),
    [
        ("POST", "/jobs", {"definition": "guarded", "payload": {"number": "x", "more": 1}},
         {"body.payload", "body.payload.number"}),
        ("POST", "/jobs", {"definition": "guarded"}, {"body.payload"}),
        ("POST", "/jobs", {"definition": "wrok"}, {"body.definition"}),
        ("POST", "/jobs", {"definition": "work", "priority": 1001}, {"body.priority"}),
        ("POST", "/schedules", {"name": "x", "definition": "work", "cron": "x"}, {"body.cron"}),
        ("POST", "/events", {"name": "no spaces"}, {"body.name"}),
        ("GET", "/jobs?cursor=xyz", None, {"query.cursor"}),
        ("GET", "/schedules?after=%00", None, {"query.after"}),
    ],
)  # fmt: skip
async def test_a_refusal_names_the_parts_that_are_wrong(
    api: Api, method: str, path: str, body: Any, faults: set[str]
):
    answer = await api.ask(method, path, json=body)

    assert answer.status_code == 422, answer.text
    assert {fault["path"] for fault in answer.json()["errors"]} == faults
    assert all(fault["problem"] for fault in answer.json()["errors"])


@pytest.mark.parametrize(
    ("path", "change", "other"),
    [
        ("/people/ann", {"role": "viewer"}, {"is_enabled": False}),
        ("/limits/shared", {"concurrency": 1}, {"concurrency": 2}),
    ],
)
async def test_people_and_limits_are_changed_by_who_knows_their_state(
    api: Api, path: str, change: dict[str, Any], other: dict[str, Any]
):
    await api.ask("PUT", "/limits/shared", json={"concurrency": 7})
    method = "PUT" if "limits" in path else "PATCH"
    tag = (await api.get(path)).headers["ETag"]

    changed = await api.ask(method, path, json=change, headers={"If-Match": tag})
    late = await api.ask(method, path, json=other, headers={"If-Match": tag})
    deleted = await api.ask("DELETE", path, headers={"If-Match": tag})
    fresh = await api.ask("DELETE", path, headers={"If-Match": changed.headers["ETag"]})

    statuses = [each.status_code for each in (changed, late, deleted, fresh)]
    assert statuses == [200, 412, 412, 204]


async def pages(api: Api, path: str, field: str) -> list[str]:
    """The items of a list, one on each page."""
    found: list[str] = []
    cursor = ""
    while True:
        page = (await api.get(f"{path}{'&' if '?' in path else '?'}limit=1{cursor}")).json()
        assert len(page["items"]) <= 1
        found += [str(item[field]) for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


async def test_limits_queues_workers_attempts_and_previews_have_pages(
    api: Api, connection: psycopg.Connection
):
    for number, name in enumerate("abc", start=1):
        await api.ask("PUT", f"/limits/{name}", json={"concurrency": 1})
        await api.post("/jobs", {"definition": "work", "queue": name})
        facts = {"host": "h", "process_identity": "p", "version": "1", "queues": [], "pid": 1}
        insert(
            connection, "workers", worker_id=number, name=name, concurrency=1, **facts,
            expires_at="2099-01-01",
        )  # fmt: skip
        insert_attempt(connection, 1, number=number, finished_at="now")
    await api.post("/schedules", {"name": "daily", "definition": "work", "cron": "0 0 * * *"})

    assert await pages(api, "/limits", "name") == ["a", "b", "c"]
    assert await pages(api, "/queues", "name") == ["a", "b", "c"]
    assert await pages(api, "/queues?tenant=*", "name") == ["a", "b", "c"]
    assert await pages(api, "/workers", "id") == ["3", "2", "1"]
    assert await pages(api, "/jobs/1/attempts", "number") == ["1", "2", "3"]
    first = (await api.get("/schedules/daily/preview?limit=4")).json()
    second = (await api.get(f"/schedules/daily/preview?cursor={first['next_cursor']}")).json()
    assert len(first["items"]) == 4
    assert first["items"][-1]["at"] < second["items"][0]["at"]


async def test_a_thing_is_enabled_by_one_word_in_and_out(api: Api):
    schedule = {"name": "s", "definition": "work", "cron": "@daily", "is_enabled": False}
    trigger = {"name": "t", "definition": "work", "event": "x", "is_enabled": False}

    made = [await api.post("/schedules", schedule), await api.post("/triggers", trigger)]
    person = await api.ask("PATCH", "/people/ann", json={"is_enabled": False})

    assert [each.json()["is_enabled"] for each in (*made, person)] == [False] * 3
    again = await api.ask("PATCH", "/schedules/s", json={"is_enabled": True})
    assert again.json()["is_enabled"] is True
