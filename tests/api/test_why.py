"""/jobs/{id}/why: who is told what."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.types import JobState
from tests.support.api import Api
from tests.support.rows import insert_definition, insert_job


@pytest.fixture(autouse=True)
def send(connection: psycopg.Connection) -> None:
    insert_definition(connection, "send")


async def enqueue(api: Api, role: Role, tenant: str = "default", **given: object) -> str:
    answer = await api.post("/jobs", {"definition": "send", **given}, role=role, tenant=tenant)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_an_answer_has_the_state_and_reasons_with_fixes(api: Api):
    job_id = await enqueue(api, Role.OPERATOR)
    await api.post("/queues/default/pause", {"reason": "down"})

    answer = (await api.get(f"/jobs/{job_id}/why")).json()

    assert (answer["job_id"], answer["state"], answer["waits_for"]) == (job_id, "queued", None)
    assert [reason["code"] for reason in answer["reasons"]] == ["queue_paused", "nobody_serves"]
    assert answer["reasons"][0]["fix"] == "mainspring queues resume default"
    assert answer["reasons"][0]["facts"]["by"] == "ops"


async def test_a_member_is_told_of_its_own_jobs_only(api: Api):
    own = await enqueue(api, Role.MEMBER)
    others = await enqueue(api, Role.ADMIN)

    answers = [await api.get(f"/jobs/{each}/why", role=Role.MEMBER) for each in (own, others)]

    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER, Role.VIEWER])
async def test_an_unknown_job_and_one_of_another_tenant_look_the_same(api: Api, role: Role):
    job_id = await enqueue(api, Role.ADMIN, "acme")

    known, unknown = [await api.get(f"/jobs/{each}/why", role=role) for each in (job_id, "999999")]

    assert (known.status_code, unknown.status_code) == (404, 404)
    assert known.json()["detail"].replace(job_id, "999999") == unknown.json()["detail"]


async def test_an_operator_is_told_what_became_of_an_id(api: Api):
    answer = (await api.get("/jobs/999999/why")).json()

    assert (answer["state"], answer["reasons"][0]["code"]) == (None, "unknown_id")


async def test_jobs_that_a_caller_may_not_see_are_numbers(api: Api, connection):
    parent = await enqueue(api, Role.ADMIN)
    running = insert_job(connection, JobState.RUNNING, tenant_id="acme")
    connection.execute(
        "insert into mainspring.workers (worker_id, expires_at, pid, concurrency, name, host,"
        " process_identity, queues, version)"
        " values (7, 'tomorrow', 1, 1, 'secret:1', 'secret', 'i', '{default}', '1')"
    )
    job_id = await enqueue(api, Role.MEMBER, priority=1)
    blocked = await enqueue(api, Role.MEMBER)
    connection.execute(
        "update mainspring.jobs set state = 'blocked', waits_for = 'parents' where job_id = %s",
        (blocked,),
    )
    connection.execute(
        "insert into mainspring.dependencies (job_id, parent_id) values (%s, %s)",
        (blocked, parent),
    )

    full = (await api.get(f"/jobs/{job_id}/why", role=Role.MEMBER)).json()
    waits = (await api.get(f"/jobs/{blocked}/why", role=Role.MEMBER)).json()

    assert [reason["code"] for reason in full["reasons"]] == ["places_full"]
    assert full["reasons"][0]["facts"]["oldest"] is None
    assert f"job {running}" not in str(full)
    assert "a job that you may not see" in waits["reasons"][0]["sentence"]
    assert waits["reasons"][0]["fix"] is None
    assert "secret" not in str((full, waits))


async def test_a_locked_row_does_not_tell_a_tenant_who_locks_it(api: Api, database_url: str):
    job_id = await enqueue(api, Role.ADMIN)
    with psycopg.connect(database_url, application_name="backup") as other:
        other.execute("select from mainspring.jobs for update")
        answer = (await api.get(f"/jobs/{job_id}/why", role=Role.ADMIN)).json()

    reason = next(each for each in answer["reasons"] if each["code"] == "locked")
    assert (reason["facts"], reason["fix"]) == ({}, None)
    assert "backup" not in reason["sentence"]
