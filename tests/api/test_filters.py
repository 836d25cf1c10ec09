"""Filters take several values; what a request does not know or repeats is refused."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api


async def names(api: Api, path: str, field: str = "name") -> list[str]:
    answer = await api.get(path)
    assert answer.status_code == 200, answer.text
    return sorted(item[field] for item in answer.json()["items"])


async def test_every_list_takes_several_values(api: Api, connection: psycopg.Connection):
    for name, definition in (("a", "work"), ("b", "guarded"), ("c", "other")):
        connection.execute(
            "insert into mainspring.definitions (key, kind) values (%s, 'python')"
            " on conflict do nothing",
            (definition,),
        )
        connection.execute(
            "insert into mainspring.schedules (name, definition, cron, payload)"
            """ values (%s, %s, '0 0 1 1 *', '{"number": 7}')""",
            (name, definition),
        )
        connection.execute(
            "insert into mainspring.triggers (name, event, definition, payload)"
            """ values (%s, %s, %s, '{"number": 7}')""",
            (name, f"{name}.*", definition),
        )
        await api.post("/events", {"name": f"{name}.happened"})
        await api.post("/flows", {"name": name, "steps": [{"step": "one", "definition": "work"}]})
        await api.post(
            "/jobs",
            {"definition": "guarded", "payload": {"number": 7}, "approvals_needed": 1},
        )
    both = "definition=work&definition=guarded"

    assert await names(api, f"/schedules?{both}") == ["a", "b"]
    assert await names(api, f"/triggers?{both}") == ["a", "b"]
    assert await names(api, "/triggers?event=a.x&event=c.x") == ["a", "c"]
    assert await names(api, "/events?name=a.*&name=c.happened") == ["a.happened", "c.happened"]
    assert await names(api, "/flows?name=a&name=b") == ["a", "b"]
    assert len(await names(api, f"/approvals?{both}", "definition")) == 3
    assert await names(api, "/approvals?definition=work", "definition") == []
    assert await names(api, "/audit?noun=flow&noun=event&noun=schedule", "noun") == ["schedule"] * 3
    assert await names(api, "/audit?noun=schedule&action=delete&action=create", "subject") == [
        "a",
        "b",
        "c",
    ]
    assert set(await names(api, "/definitions?kind=sql&kind=python", "key")) >= {"work", "other"}
    assert await names(api, "/definitions?kind=sql&kind=command", "key") == []
    assert len(await names(api, "/tokens?role=viewer&role=admin")) == 4
    assert await names(api, "/tokens?state=revoked&state=expired") == []


async def test_the_sessions_of_several_people_are_listed(api: Api):
    people = [
        await api.post("/people", {"name": name, "role": "viewer"}) for name in ("eve", "bob")
    ]
    assert [each.status_code for each in people] == [201, 201]

    both = await api.get("/sessions?person=eve&person=bob")
    unknown = await api.get("/sessions?person=eve&person=nobody")

    assert both.json()["items"] == []
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    ("query", "path", "problem"),
    [
        ("limit=1&limit=2", "query.limit", "takes one value and is given 2 times; give it once"),
        (
            "created_after=2026-01-01T00:00:00Z&created_after=2026-01-02T00:00:00Z",
            "query.created_after",
            "takes one value and is given 2 times; give it once",
        ),
        (
            "status=queued",
            "query.status",
            "is not a parameter of this request; did you mean state?",
        ),
        (
            "state=queued,running",
            "query.state.0",
            "for several values repeat the parameter: state=queued&state=running",
        ),
    ],
)
@pytest.mark.parametrize("list_path", ["/jobs", "/jobs/stream"])
async def test_a_parameter_that_would_be_ignored_is_refused(
    api: Api, list_path: str, query: str, path: str, problem: str
):
    answer = await api.get(f"{list_path}?{query}")

    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_request"
    (fault,) = answer.json()["errors"]
    assert fault["path"] == path
    assert fault["problem"].endswith(problem)
    assert problem in answer.json()["detail"]


async def test_every_wrong_parameter_is_named(api: Api):
    answer = await api.get("/schedules?enabled=true&limit=1&limit=2")

    assert [fault["path"] for fault in answer.json()["errors"]] == ["query.enabled", "query.limit"]
    assert "did you mean is_enabled?" in answer.json()["detail"]


async def test_several_states_are_paged_over_in_order(api: Api, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs_history disable trigger user")
    for number in range(1, 31):
        state = ("failed", "canceled", "dead_letter", "succeeded")[number % 4]
        connection.execute(
            "insert into mainspring.jobs_history (job_id, definition, state, finished_at)"
            " values (%s, 'work', %s, now())",
            (number, state),
        )
    wanted = [number for number in range(30, 0, -1) if number % 4 in (0, 1)]
    for query in ("state=failed&state=canceled", "state=failed&state=canceled&tenant=*"):
        seen: list[int] = []
        cursor = ""
        while True:
            page = (await api.get(f"/jobs?{query}&limit=4{cursor}")).json()
            seen += [int(item["id"]) for item in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert seen == wanted


async def test_a_bulk_filter_takes_a_value_or_several(api: Api):
    for tag in ("blue", "red", "green"):
        await api.post("/jobs", {"definition": "work", "tags": [tag]})

    async def count(**asked: object) -> int:
        body = {"action": "cancel", "filter": asked, "dry_run": True}
        answer = await api.post("/jobs/bulk", body)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["count"])

    assert await count(tag=["blue", "red"], state=["queued", "running"]) == 2
    assert await count(tag="green", created_by=["ops", "nobody"]) == 1
    assert await count(tag="green", created_by=["eve", "nobody"]) == 0
    refused = await api.post("/jobs/bulk", {"action": "cancel", "filter": {"state": ["done"]}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "body.filter.state.0"


async def test_a_member_may_name_only_itself(api: Api):
    own = await api.get("/jobs?created_by=member-default", role=Role.MEMBER)
    others = await api.get("/jobs?created_by=member-default&created_by=ann", role=Role.MEMBER)

    assert own.status_code == 200
    assert others.status_code == 403
