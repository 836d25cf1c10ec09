"""/jobs: enqueue, list, page, get, cancel, retry, delete, approve."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api


async def enqueue(api: Api, **given: object) -> str:
    asked = {"definition": "work", "payload": {"n": 1}, **given}
    answer = await api.post("/jobs", asked, role=Role.ADMIN)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_job_is_enqueued_and_read_back(api: Api):
    answer = await api.post(
        "/jobs",
        {"definition": "work", "payload": {"n": 1}, "priority": 7, "tags": ["a", "b"]},
        role=Role.MEMBER,
    )

    assert answer.status_code == 201
    job_id = answer.json()["id"]
    assert (answer.json()["id"], answer.json()["is_new"]) == (job_id, True)
    assert answer.headers["location"] == f"/api/v1/jobs/{job_id}"
    job = (await api.get(f"/jobs/{job_id}", role=Role.MEMBER)).json()
    assert (job["state"], job["priority"], job["tags"]) == ("queued", 7, ["a", "b"])
    assert (job["source"], job["created_by"]) == ("api", "member-default")
    assert (job["tenant"], job["payload"]) == ("default", {"n": 1})


async def test_a_filter_that_is_misspelt_is_not_taken_for_none(api: Api):
    answer = await api.get("/jobs?stauts=failed")

    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "query.stauts: is not a parameter of this request; did you mean state?"
    )


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/jobs", {"job_type": "work"}, "body.job_type: {}; did you mean definition?"),
        ("/jobs", {"definition": "work", "prority": 1}, "body.prority: {}; did you mean priority?"),
        ("/jobs", {"definition": "work", "xyzzy": 1}, "body.xyzzy: {}"),
        (
            "/flows",
            {"name": "f", "steps": [{"step": "a", "definition": "work", "args": {}}]},
            "body.steps.0.args: {}; did you mean payload?",
        ),
    ],
)
async def test_a_field_that_is_misspelt_is_named_with_the_one_that_was_meant(
    api: Api, path: str, body: dict[str, object], said: str
):
    answer = await api.post(path, body, role=Role.ADMIN)

    assert answer.status_code == 422
    problems = [f"{each['path']}: {each['problem']}" for each in answer.json()["errors"]]
    assert said.format("is not a field of this request") in problems


async def test_a_body_is_json_whatever_the_client_says_of_it(api: Api):
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = await api.ask("POST", "/jobs", content=b'{"definition": "work"}', headers=form)

    assert answer.status_code == 201


async def test_the_same_idempotency_key_gives_the_first_job_and_another_body_is_refused(api: Api):
    key = {"Idempotency-Key": "order-7"}
    body = {"definition": "work", "payload": {"n": 1}}

    first = await api.post("/jobs", body, headers=key)
    again = await api.post("/jobs", body, headers=key)
    other = await api.post("/jobs", {**body, "payload": {"n": 2}}, headers=key)

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "is_new": False}
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


async def test_a_payload_that_does_not_fit_its_schema_is_refused_and_nothing_is_written(api: Api):
    answer = await api.post("/jobs", {"definition": "guarded", "payload": {"number": "seven"}})

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "invalid_payload"
    assert "number" in answer.json()["detail"]
    assert (await api.get("/jobs")).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs", {"definition": "wrok"}),
        ("/jobs/many", {"definition": "wrok", "payloads": [{}]}),
        ("/flows", {"name": "nightly", "steps": [{"step": "a", "definition": "wrok"}]}),
    ],
)
@pytest.mark.parametrize("role", [Role.MEMBER, Role.OPERATOR])
async def test_who_mistypes_a_definition_is_told_what_was_probably_meant(
    api: Api, path: str, body: dict[str, object], role: Role
):
    answer = await api.post(path, body, role=role)

    assert answer.status_code == 422
    assert answer.json()["detail"] == "unknown definition 'wrok'; did you mean 'work'?"


async def test_pages_follow_each_other_newest_first(api: Api):
    ids = [await enqueue(api) for _ in range(5)]

    first = (await api.get("/jobs?limit=3")).json()
    second = (await api.get(f"/jobs?limit=3&cursor={first['next_cursor']}")).json()

    assert [job["id"] for job in first["items"] + second["items"]] == ids[::-1]
    assert second["next_cursor"] is None


async def test_filters_choose_jobs(api: Api, connection: psycopg.Connection):
    tagged = await enqueue(api, tags=["blue"], queue="mail")
    canceled = await enqueue(api)
    await api.post(f"/jobs/{canceled}/cancel", {"reason": "The Disk is full"})
    old = await enqueue(api)
    connection.execute(
        "update mainspring.jobs set created_at = now() - interval '2 days' where job_id = %s",
        (old,),
    )
    connection.execute("select mainspring.enqueue('work')")
    yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def found(query: str) -> list[str]:
        answer = await api.get(f"/jobs?{query}")
        assert answer.status_code == 200, answer.text
        return [job["id"] for job in answer.json()["items"]]

    assert await found("tag=blue") == [tagged]
    assert await found("queue=mail") == [tagged]
    assert await found("state=canceled") == [canceled]
    assert await found("error=disk") == [canceled]
    assert await found(f"created_before={yesterday}") == [old]
    assert old not in await found(f"created_after={yesterday}")
    assert len(await found("source=code")) == 1
    assert len(await found("source=api")) == 3
    assert await found("created_by=admin-default") == [old, canceled, tagged]
    assert await found("definition=guarded") == []
    assert await found("state=canceled&state=failed") == [canceled]
    assert await found("state=canceled&tag=blue&tag=red") == []
    assert await found("tag=red&tag=blue") == [tagged]
    assert await found("queue=mail&queue=none&definition=work&definition=guarded") == [tagged]
    assert await found("error=DISK%20is&error=100%25") == [canceled]
    assert await found("error=1_0&error=%25") == []
    assert len(await found("source=api&source=code")) == 4
    assert await found("created_by=admin-default&created_by=nobody") == [old, canceled, tagged]


async def test_a_job_is_canceled_retried_and_deleted_and_the_audit_knows_who(api: Api):
    job_id = await enqueue(api)

    canceled = await api.post(f"/jobs/{job_id}/cancel", {"reason": "no"}, role=Role.ADMIN)
    retried = await api.post(f"/jobs/{job_id}/retry", {"payload": {"n": 2}}, role=Role.ADMIN)
    job = (await api.get(f"/jobs/{job_id}")).json()
    deleted = await api.ask("DELETE", f"/jobs/{job_id}", role=Role.ADMIN)

    assert canceled.json() == {"id": job_id, "state": "canceled"}
    assert retried.json() == {"id": job_id, "state": "queued"}
    assert job["payload"] == {"n": 2}
    assert deleted.status_code == 204
    assert (await api.get(f"/jobs/{job_id}")).status_code == 404
    entries = (await api.get("/audit?noun=job")).json()["items"]
    assert [(entry["action"], entry["actor"], entry["subject"]) for entry in entries] == [
        ("delete", "admin-default", job_id),
        ("retry", "admin-default", job_id),
        ("cancel", "admin-default", job_id),
    ]
    assert entries[-1]["before"] == {"state": "queued"}
    assert entries[-1]["after"] == {"state": "canceled"}


async def test_a_member_sees_and_steers_only_its_own_and_is_told_who_can(api: Api):
    theirs = await enqueue(api)
    answer = await api.post("/jobs", {"definition": "work"}, role=Role.MEMBER)
    own = answer.json()["id"]

    listed = (await api.get("/jobs", role=Role.MEMBER)).json()["items"]
    refused = await api.ask("DELETE", f"/jobs/{theirs}", role=Role.MEMBER)

    assert [job["id"] for job in listed] == [own]
    assert refused.status_code == 404
    assert "mainspring admin jobs" in refused.json()["detail"]
    assert (await api.post(f"/jobs/{theirs}/cancel", role=Role.MEMBER)).status_code == 404
    assert (await api.get(f"/jobs/{theirs}/attempts", role=Role.MEMBER)).status_code == 404
    assert (await api.post(f"/jobs/{own}/cancel", role=Role.MEMBER)).status_code == 200


async def test_jobs_are_enqueued_together_or_not_at_all(api: Api):
    payloads = [{"number": number} for number in range(300)]

    made = await api.post("/jobs/many", {"definition": "guarded", "payloads": payloads})
    wrong = await api.post(
        "/jobs/many", {"definition": "guarded", "payloads": [*payloads, {"number": None}]}
    )

    assert made.status_code == 201
    assert len(set(made.json()["ids"])) == 300
    assert wrong.status_code == 422
    assert len((await api.get("/jobs?limit=1000")).json()["items"]) == 300


async def test_a_job_that_awaits_approval_is_approved_by_who_asks(api: Api):
    job_id = await enqueue(api, approvals_needed=1)

    waiting = (await api.get("/approvals")).json()["items"]
    approved = await api.post(f"/jobs/{job_id}/approve", {"reason": "fine"}, role=Role.ADMIN)

    assert [approval["job_id"] for approval in waiting] == [job_id]
    assert approved.json() == {"id": job_id, "state": "queued"}
    votes = (await api.get(f"/approvals/{job_id}")).json()["votes"]
    assert [(vote["actor"], vote["reason"]) for vote in votes] == [("admin-default", "fine")]


async def test_an_operator_alone_decides_for_someone_else_and_is_named(api: Api):
    job_id = await enqueue(api, approvals_needed=2)
    decision = {"reason": "fine", "by": "ann"}

    approved = await api.post(f"/jobs/{job_id}/approve", decision)
    refused = await api.post(f"/jobs/{job_id}/reject", decision, role=Role.ADMIN)

    assert approved.json()["state"] == "awaiting_approval"
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    votes = (await api.get(f"/approvals/{job_id}")).json()["votes"]
    assert [(vote["actor"], vote["reason"]) for vote in votes] == [
        ("ann", "fine (recorded by ops)")
    ]
    own = {"by": "admin-default"}
    decided = await api.post(f"/jobs/{job_id}/approve", own, role=Role.ADMIN)
    assert decided.json()["state"] == "queued"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"payload": {}}, "body.definition"),
        ({"definition": "work", "priority": 1001}, "body.priority"),
        ({"definition": "work", "priority": "7"}, "body.priority"),
        ({"definition": "work", "payload": []}, "body.payload"),
        ({"definition": "work", "delay": -1}, "body.delay"),
        ({"definition": "work", "prioritty": 1}, "body.prioritty"),
        ({"definition": "work", "scheduled_for": "tomorrow"}, "body.scheduled_for"),
        ({"definition": "work", "scheduled_for": "2026-01-01T00:00:00"}, "body.scheduled_for"),
        ({"definition": "wrok"}, "wrok"),
        ({"definition": "work", "payload": {"a": "\u0000"}}, "NUL"),
        ({"definition": "work", "after": ["999999"]}, "999999"),
    ],
)
async def test_a_wrong_enqueue_is_refused_and_the_answer_says_where(
    api: Api, body: object, said: str
):
    answer = await api.post("/jobs", body)

    assert 400 <= answer.status_code < 500, answer.text
    assert said in answer.json()["detail"]
    assert answer.json()["code"]
    assert (await api.get("/jobs")).json()["items"] == []


async def test_the_summary_counts_what_is_live_and_what_has_ended(api: Api):
    first, second, third = [await enqueue(api) for _ in range(3)]
    await enqueue(api, delay=3600)
    await enqueue(api, approvals_needed=1)
    for job_id in (first, second):
        await api.post(f"/jobs/{job_id}/cancel")
    await api.ask("DELETE", f"/jobs/{first}")

    summary = (await api.get("/jobs/summary", role=Role.VIEWER)).json()

    assert summary["counts"]["queued"] == 2
    assert summary["counts"]["awaiting_approval"] == 1
    assert summary["counts"]["canceled"] == 1
    assert summary["today"]["canceled"] == 1
    assert summary["waiting"] == 1
    ready = (await api.get(f"/jobs/{third}")).json()["scheduled_for"]
    assert summary["oldest_ready_at"] == ready


async def test_the_summary_of_a_member_leaves_out_what_is_not_counted(api: Api):
    await enqueue(api)

    summary = (await api.get("/jobs/summary", role=Role.MEMBER)).json()

    assert (summary["counts"]["queued"], summary["today"]) == (0, {})
    assert "succeeded" not in summary["counts"]


@pytest.mark.parametrize("path", ["/jobs/abc", "/jobs/-1/attempts", "/flows/x", "/events/1.5"])
async def test_an_id_that_is_no_number_is_named_as_wrong(api: Api, path: str):
    answer = await api.get(path)

    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"].endswith("_id")
    text = path.split("/")[2]
    assert error["problem"] == f"must be an id: a whole number, 1 or more, not {text!r}"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/zzz", "there is no path /api/v1/zzz"),
        ("/job", "there is no path /api/v1/job; did you mean /api/v1/jobs?"),
        ("/jobs/7/attempt", "there is no path /api/v1/jobs/7/attempt; did you mean "),
        ("/" + "a" * 300, "there is no path /api/v1/" + "a" * 192 + "..."),
    ],
)
async def test_a_path_that_does_not_exist_is_named(api: Api, path: str, detail: str):
    answer = await api.get(path)

    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    said = answer.json()["detail"]
    assert said.startswith(detail) if detail.endswith(" ") else said == detail


async def test_a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(api: Api):
    answer = await api.ask("PUT", "/jobs/7")

    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.json()["detail"] == "/api/v1/jobs/7 does not take PUT; use DELETE or GET"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"definition": "work", "payload": [1]}, "body.payload: must be a JSON object"),
        ([1], "body: must be a JSON object"),
        ({"definition": "work", "priority": "x"}, "body.priority: must be a whole number"),
        ({"payload": {}}, "body.definition: is missing"),
    ],
)
async def test_a_refusal_uses_the_words_of_json(api: Api, body: object, said: str):
    answer = await api.post("/jobs", body)

    assert answer.json()["detail"] == said
