"""/jobs/bulk: cancel, retry and delete by filter, as a job that a worker carries out."""

from typing import Any

import psycopg
import pytest

from mainspring import JobState
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.operations import bulk, enqueue, operating, states
from tests.support.rows import insert, insert_job
from tests.support.waiting import await_until

BUILT_IN = "mainspring.prune_keys"


async def done(
    api: Api, action: str, role: Role = Role.ADMIN, **said: Any
) -> tuple[str, dict[str, Any]]:
    """The id of an operation that has ended, and its result."""
    answer = await bulk(api, action, role, **said)
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]

    async def ended() -> Any:
        job = (await api.get(f"/jobs/{job_id}", role=role)).json()
        return job if job["finished_at"] else None

    async with operating(api):
        job = await await_until(ended, what="the operation ends")
    assert job["state"] == "succeeded", job["last_error"]
    return job_id, job["result"]


def run(connection: psycopg.Connection, **columns: Any) -> int:
    """A job that a worker runs which is somewhere else."""
    insert(
        connection,
        "workers",
        worker_id=7,
        expires_at="infinity",
        pid=1,
        concurrency=1,
        name="far",
        host="far",
        process_identity="far",
        queues=[],
        version="1",
    )
    return insert_job(connection, JobState.RUNNING, **columns)


async def test_a_dry_run_counts_what_passes_and_changes_nothing(
    api: Api, connection: psycopg.Connection
):
    await enqueue(api, 3, tags=["blue"])
    await enqueue(api, 2)

    answer = await bulk(api, "cancel", dry_run=True, tag="blue", state="queued")

    assert (answer.status_code, answer.json()) == (200, {"count": 3, "is_exact": True})
    assert states(connection) == {"queued": 5}


async def test_a_count_that_would_look_at_too_much_says_so(
    api: Api, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mainspring.services.operations._MOST_SEEN", 4)
    ids = await enqueue(api, 5)

    answer = await bulk(api, "cancel", dry_run=True, definition="work")
    await api.ask("DELETE", f"/jobs/{ids[0]}")
    exact = await bulk(api, "cancel", dry_run=True, definition="work")

    assert answer.json() == {"count": 4, "is_exact": False}
    # That there is nothing behind the fourth is not known either.
    assert exact.json() == {"count": 4, "is_exact": False}


async def test_jobs_are_canceled_as_one_by_one_and_the_audit_names_who_asked(
    api: Api, connection: psycopg.Connection
):
    ids = await enqueue(api, 2, tags=["blue"])
    running = run(connection, tags=["blue"])
    ended = insert_job(connection, JobState.FAILED, tags=["blue"])
    (other,) = await enqueue(api)

    operation, result = await done(api, "cancel", tag="blue", reason="no longer needed")

    assert result == {"action": "cancel", "changed": 3, "skipped": 0, "reasons": {}}
    assert states(connection) == {"canceled": 2, "running": 1, "failed": 1, "queued": 1}
    stopped = (await api.get(f"/jobs/{running}")).json()
    assert stopped["cancel_requested_at"] is not None
    assert stopped["last_error"] == "no longer needed"
    entries = (await api.get("/audit?noun=job")).json()["items"]
    told = {(each["subject"], each["action"], each["actor"], each["reason"]) for each in entries}
    reason = "no longer needed"
    assert told == {
        (operation, "bulk_cancel", "admin-default", reason),
        *((job, "cancel", "admin-default", reason) for job in (*ids, str(running))),
    }
    assert {str(ended), other}.isdisjoint(each["subject"] for each in entries)
    first = next(each for each in entries if each["subject"] == ids[0])
    assert (first["before"], first["after"]) == ({"state": "queued"}, {"state": "canceled"})
    (identity,) = {each["actor_id"] for each in entries}
    assert identity.startswith("token:")


async def test_what_ended_without_success_is_retried_but_for_a_dedupe_key_that_is_taken(
    api: Api, connection: psycopg.Connection
):
    for state in (JobState.FAILED, JobState.DEAD_LETTER, JobState.CANCELED, JobState.SUCCEEDED):
        insert_job(connection, state, last_error="The Disk is full", queue="left alone")
    for _ in range(2):
        insert_job(
            connection,
            JobState.FAILED,
            last_error="the disk",
            dedupe_key="one",
            queue="left alone",
        )

    _, result = await done(api, "retry", error="disk")

    assert result == {
        "action": "retry",
        "changed": 4,
        "skipped": 1,
        "reasons": {"dedupe_key_taken": 1},
    }
    assert states(connection) == {"queued": 4, "succeeded": 1, "failed": 1}
    entries = (await api.get("/audit?noun=job")).json()["items"]
    retried = [each for each in entries if each["action"] == "retry"]
    assert len(retried) == 4
    assert all(each["after"] == {"state": "queued"} for each in retried)


async def test_a_delete_removes_what_a_single_one_may_and_all_that_belongs_to_it(
    api: Api, connection: psycopg.Connection
):
    await enqueue(api, 2)
    (waiting,) = await enqueue(api, approvals_needed=1)
    insert_job(connection, JobState.SUCCEEDED)
    running = run(connection)
    system = insert_job(connection, JobState.FAILED, definition=BUILT_IN)
    acme = await api.post("/jobs", {"definition": "work"}, params={"tenant": "acme"})

    _, result = await done(api, "delete", all=True)

    assert result == {"action": "delete", "changed": 4, "skipped": 0, "reasons": {}}
    assert states(connection) == {"running": 1, "queued": 1}
    assert (await api.get(f"/jobs/{running}")).status_code == 200
    assert (await api.get(f"/jobs/{system}")).status_code == 200
    assert (await api.get(f"/jobs/{acme.json()['id']}?tenant=acme")).status_code == 200
    left = connection.execute(
        "select count(*) from mainspring.approvals where job_id = %s", (waiting,)
    )
    assert left.fetchone() == (0,)


async def test_an_operator_says_whose_jobs(api: Api, connection: psycopg.Connection):
    await enqueue(api)
    params = {"tenant": "acme"}
    theirs = await api.post("/jobs", {"definition": "work", "queue": "x"}, params=params)
    body = {"action": "cancel", "filter": {"definition": "work"}}

    answer = await api.post("/jobs/bulk", body, params=params)
    unknown = await api.post("/jobs/bulk", body, params={"tenant": "nobody"})

    operation = answer.json()
    assert operation["count"] == 1
    assert (unknown.status_code, unknown.json()["code"]) == (404, "tenant_not_found")
    async with operating(api):

        async def is_canceled() -> bool:
            job = await api.get(f"/jobs/{theirs.json()['id']}", params=params)
            return bool(job.json()["state"] == "canceled")

        await await_until(is_canceled)
    job = (await api.get(f"/jobs/{operation['job_id']}", params=params)).json()
    assert (job["tenant"], job["payload"]["tenant"]) == ("acme", "acme")
    assert states(connection) == {"canceled": 1, "queued": 1}


async def test_a_member_touches_its_own_jobs_and_follows_the_operation(
    api: Api, connection: psycopg.Connection
):
    await enqueue(api, 2)
    await enqueue(api, 3, role=Role.MEMBER)

    counted = await bulk(api, "cancel", Role.MEMBER, dry_run=True, definition="work")
    others = await bulk(api, "cancel", Role.MEMBER, created_by="admin-default")
    operation, result = await done(api, "cancel", Role.MEMBER, definition="work")

    assert counted.json() == {"count": 3, "is_exact": True}
    assert others.status_code == 403
    assert result["changed"] == 3
    assert states(connection) == {"canceled": 3, "queued": 2}
    job = (await api.get(f"/jobs/{operation}", role=Role.MEMBER)).json()
    assert job["payload"]["creator"] == "member-default"
    assert job["created_by"] == "member-default"


async def test_a_member_can_cancel_the_operation_that_it_started(api: Api):
    await enqueue(api, role=Role.MEMBER)
    operation = (await bulk(api, "cancel", Role.MEMBER, queue="left alone")).json()["job_id"]

    answer = await api.post(f"/jobs/{operation}/cancel", role=Role.MEMBER)

    assert answer.json() == {"id": operation, "state": "canceled"}


async def test_only_jobs_that_were_there_before_are_touched(
    api: Api, connection: psycopg.Connection
):
    await enqueue(api, 2)
    answer = await bulk(api, "cancel", definition="work")
    await enqueue(api, 3)

    async def is_over() -> bool:
        job = await api.get(f"/jobs/{answer.json()['job_id']}")
        return bool(job.json()["state"] == "succeeded")

    async with operating(api):
        await await_until(is_over)

    assert states(connection) == {"canceled": 2, "queued": 3}


async def test_the_same_key_starts_one_operation(api: Api, connection: psycopg.Connection):
    body = {"action": "cancel", "filter": {"definition": "work"}}
    key = {"Idempotency-Key": "tidy up"}

    first = await api.post("/jobs/bulk", body, headers=key)
    again = await api.post("/jobs/bulk", body, headers=key)
    other = await api.post("/jobs/bulk", {**body, "action": "delete"}, headers=key)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (409, "replay_conflict")
    assert states(connection, "mainspring.bulk") == {"queued": 1}
