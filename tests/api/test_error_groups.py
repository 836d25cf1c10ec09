"""Errors over the API: listed by group, and as a filter of jobs and of bulk operations."""

from datetime import datetime, timedelta

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.types import JobState
from tests.support.api import Api
from tests.support.failing import DAY, NOW, fail
from tests.support.operations import bulk, operating
from tests.support.rows import insert_attempt, insert_job
from tests.support.waiting import await_until


async def keys(api: Api, query: str = "", role: Role = Role.ADMIN) -> list[str]:
    answer = await api.get(f"/errors{query}", role=role)
    assert answer.status_code == 200, answer.text
    return [item["key"] for item in answer.json()["items"]]


async def test_new_errors_come_first_then_those_with_the_most_failures(
    api: Api, connection: psycopg.Connection
):
    fail(connection, "known", 9, at=NOW - 3 * DAY)
    fail(connection, "known", 9)
    fail(connection, "rare", 1)
    fail(connection, "often", 3)

    assert await keys(api) == ["often", "rare", "known"]
    assert await keys(api, "?is_new=true") == ["often", "rare"]
    assert await keys(api, "?is_new=false") == ["known"]


async def test_a_group_says_what_fails_and_which_jobs(api: Api, connection: psycopg.Connection):
    first = fail(connection, "a", 2, at=NOW - 2 * DAY, definition="other")
    job_ids = fail(connection, "a", 7)

    (found,) = (await api.get("/errors")).json()["items"]
    whole = (await api.get("/errors/a")).json()

    assert (found["key"], found["tenant"], found["sample"]) == ("a", "default", "a: broken")
    assert (found["count"], found["is_new"], found["definitions"]) == (7, False, ["work"])
    assert found["job_ids"] == [str(job_id) for job_id in reversed(job_ids[-5:])]
    assert datetime.fromisoformat(found["first_at"]) == NOW - 2 * DAY
    assert datetime.fromisoformat(found["last_at"]) == NOW
    assert (whole["count"], whole["definitions"]) == (9, ["other", "work"])
    assert [day["count"] for day in whole["days"]] == [7, 2]
    assert str(first[0]) not in found["job_ids"]


async def test_errors_are_filtered_by_definition_and_time(api: Api, connection: psycopg.Connection):
    fail(connection, "past", at=NOW - timedelta(hours=25))
    fail(connection, "guard", definition="guarded")
    fail(connection, "work")

    assert await keys(api) == ["guard", "work"]
    assert await keys(api, "?definition=guarded") == ["guard"]
    ago = (NOW - 2 * DAY).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert set(await keys(api, f"?since={ago}")) == {"guard", "past", "work"}


async def test_a_list_of_errors_has_pages(api: Api, connection: psycopg.Connection):
    for number in range(5):
        fail(connection, f"e{number}", 1 + number % 2)

    found, cursor = [], ""
    while True:
        page = (await api.get(f"/errors?limit=2{cursor}")).json()
        found += [item["key"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert found == ["e1", "e3", "e0", "e2", "e4"]


@pytest.mark.parametrize("cursor", ["bm8", "WzEsMl0", "W3RydWUsMCwiYSIsImIiXQ"])
async def test_an_invalid_cursor_is_refused(api: Api, cursor: str):
    answer = await api.get(f"/errors?cursor={cursor}")

    assert answer.status_code == 422
    assert "cursor" in answer.text


async def test_an_unknown_error_is_not_found(api: Api):
    answer = await api.get("/errors/nothing")

    assert answer.status_code == 404
    assert answer.json()["code"] == "error_group_not_found"


async def test_a_tenant_sees_only_its_own_errors(api: Api, connection: psycopg.Connection):
    fail(connection, "ours")
    fail(connection, "theirs", tenant_id="acme")
    fail(connection, "shared")
    fail(connection, "shared", 4, tenant_id="acme")

    assert await keys(api) == ["ours", "shared"]
    assert (await api.get("/errors/theirs")).status_code == 404
    assert (await api.get("/errors/shared")).json()["count"] == 1
    assert await keys(api, "?tenant=*", Role.OPERATOR) == ["shared", "theirs", "ours", "shared"]


async def test_a_member_sees_no_errors_and_finds_its_own_jobs_by_key(
    api: Api, connection: psycopg.Connection
):
    fail(connection, "a", 2)
    (own,) = fail(connection, "a", created_by="member-default")

    refused = await api.get("/errors", role=Role.MEMBER)
    found = (await api.get("/jobs?error_key=a", role=Role.MEMBER)).json()["items"]
    counted = await bulk(api, "retry", Role.MEMBER, error_key="a", dry_run=True)

    assert refused.status_code == 403
    assert (await api.get("/errors/a", role=Role.MEMBER)).status_code == 403
    assert [job["id"] for job in found] == [str(own)]
    assert counted.json()["count"] == 1


@pytest.mark.parametrize("query", ["", "&state=failed", "&tenant=*", "&created_by=ann"])
async def test_jobs_are_found_by_the_key_that_they_show(
    api: Api, connection: psycopg.Connection, query: str
):
    fail(connection, "a", 2, created_by="ann")
    fail(connection, "b", created_by="ann")
    insert_job(connection, JobState.SUCCEEDED, attempt=1, created_by="ann")
    role = Role.OPERATOR if "tenant" in query else Role.ADMIN

    items = (await api.get(f"/jobs?limit=50{query}", role=role)).json()["items"]
    for key in ("a", "b", "c"):
        found = (await api.get(f"/jobs?error_key={key}{query}", role=role)).json()["items"]
        assert found == [job for job in items if job["error_key"] == key]
    either = (await api.get(f"/jobs?error_key=a&error_key=b{query}", role=role)).json()["items"]
    assert len(either) == 3


async def test_the_newest_failed_attempt_counts_and_that_of_a_canceled_job_does_not(
    api: Api, connection: psycopg.Connection
):
    (job_id,) = fail(connection, "a")
    insert_attempt(connection, job_id, number=2, fence=2, finished_at=NOW, error_key="b")
    insert_attempt(
        connection, job_id, number=3, fence=3, finished_at=NOW, status="canceled", error_key=None
    )
    canceled = insert_job(connection, JobState.CANCELED, attempt=1, created_at=NOW - DAY)
    insert_attempt(connection, canceled, finished_at=NOW, error_key="b")

    (job,) = (await api.get("/jobs?error_key=b")).json()["items"]
    attempts = (await api.get(f"/jobs/{job_id}/attempts")).json()

    assert (job["id"], job["error_key"]) == (str(job_id), "b")
    assert (await api.get("/jobs?error_key=a")).json()["items"] == []
    assert (await api.get(f"/jobs/{canceled}")).json()["error_key"] is None
    shown = attempts["items"] if isinstance(attempts, dict) else attempts
    assert [attempt["error_key"] for attempt in shown] == ["a", "b", None]


async def test_a_group_is_retried_and_nothing_else(api: Api, connection: psycopg.Connection):
    group = fail(connection, "a", 3)
    other = fail(connection, "b", 2)
    fail(connection, "a", tenant_id="acme")

    counted = (await bulk(api, "retry", error_key="a", dry_run=True)).json()
    assert (counted["count"], counted["is_exact"]) == (3, True)
    async with operating(api):
        started = (await bulk(api, "retry", error_key="a")).json()

        async def is_done() -> bool:
            job = (await api.get(f"/jobs/{started['job_id']}")).json()
            return bool(job["state"] == "succeeded")

        await await_until(is_done, 30)

    live = connection.execute("select job_id from mainspring.jobs where tenant_id = 'default'")
    assert sorted(row[0] for row in live.fetchall()) == sorted(group)
    left = await bulk(api, "retry", error_key="a", dry_run=True)
    assert left.json()["count"] == 0
    assert (await bulk(api, "retry", error_key="b", dry_run=True)).json()["count"] == len(other)
