"""POST /work/register: a worker registers the definitions that it runs."""

from typing import Any

import httpx
import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.work import told

SCHEMA = {"type": "object", "required": ["text"]}
OTHER = {"type": "object", "required": ["words"]}
WORD_COUNT = {"key": "word_count", "queue": "far", "timeout": 60, "arg_schema": SCHEMA}


@pytest.fixture(autouse=True)
async def shared(api: Api) -> str:
    """A worker of the tenant acme, and one of all tenants in place of that of default."""
    return await use(api)


async def use(api: Api, **given: Any) -> str:
    asked = {"name": f"far{len(given)}", "role": "worker", "tenants": ["*"], **given}
    made = await api.post("/tokens", asked)
    assert made.status_code == 201, made.text
    text: str = made.json()["token"]
    api.tokens["default", Role.WORKER] = text
    return text


async def register(api: Api, *asked: dict[str, Any], **given: Any) -> httpx.Response:
    return await told(api, "POST", "/register", {"definitions": list(asked)}, **given)


async def changes(api: Api, *asked: dict[str, Any], **given: Any) -> list[tuple[str, list[str]]]:
    answer = await register(api, *asked, **given)
    assert answer.status_code == 200, answer.text
    return [(each["change"], each["differs"]) for each in answer.json()["definitions"]]


async def stored(api: Api, key: str = "word_count") -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/definitions/{key}")).json()
    return found


async def test_a_worker_registers_what_it_runs_and_its_payloads_are_checked(api: Api):
    made = await register(api, WORD_COUNT)
    refused = await api.post("/jobs", {"definition": "word_count", "payload": {}})
    accepted = await api.post("/jobs", {"definition": "word_count", "payload": {"text": "a"}})

    assert made.json()["definitions"] == [
        {"key": "word_count", "version": 1, "change": "created", "differs": [], "is_active": True}
    ]
    assert (refused.status_code, accepted.status_code) == (422, 201)
    assert (await stored(api))["kind"] == "remote"


async def test_nothing_is_written_where_nothing_changed(api: Api):
    await register(api, WORD_COUNT)
    before = await stored(api)

    assert await changes(api, WORD_COUNT) == [("unchanged", [])]
    assert await stored(api) == before


async def test_without_revisions_the_last_worker_wins_and_leaves_other_fields_alone(api: Api):
    await register(api, WORD_COUNT)
    await api.ask("PATCH", "/definitions/word_count", json={"concurrency": 3})

    assert await changes(api, {**WORD_COUNT, "arg_schema": OTHER}) == [("updated", [])]
    now = await stored(api)
    assert (now["arg_schema"], now["concurrency"]) == (OTHER, 3)


async def test_an_older_worker_does_not_bring_back_what_was(api: Api):
    old, new = {**WORD_COUNT, "revision": 1}, {**WORD_COUNT, "revision": 2, "arg_schema": OTHER}
    await register(api, old)

    assert await changes(api, new) == [("updated", [])]
    assert await changes(api, old) == [("kept", ["arg_schema"])]
    assert await changes(api, WORD_COUNT) == [("kept", ["arg_schema"])]
    assert await changes(api, new) == [("unchanged", [])]
    assert (await stored(api))["arg_schema"] == OTHER


async def test_what_a_person_changed_stays_until_the_next_revision(api: Api):
    await register(api, {**WORD_COUNT, "revision": 1})
    await api.ask("PATCH", "/definitions/word_count", json={"timeout": 120})

    assert await changes(api, {**WORD_COUNT, "revision": 1}) == [("kept", ["timeout"])]
    assert await changes(api, {**WORD_COUNT, "revision": 2}) == [("updated", [])]
    assert (await stored(api))["timeout"] == 60


@pytest.mark.parametrize("limits", [{"tenants": None}, {"tenants": ["default", "acme"]}])
async def test_a_worker_of_some_tenants_changes_no_definition(api: Api, limits: dict[str, Any]):
    await register(api, WORD_COUNT)
    before = await stored(api)
    await use(api, **limits, expires_in=3600)

    differs = await changes(api, {**WORD_COUNT, "timeout": 9})
    same = await changes(api, WORD_COUNT)
    refused = await register(api, {"key": "other"})

    assert (differs, same) == ([("kept", ["timeout"])], [("unchanged", [])])
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "mainspring definitions create other --kind remote" in refused.json()["detail"]
    assert await stored(api) == before


async def test_a_worker_without_the_scope_changes_no_definition(api: Api):
    await use(api, scopes=["work:write"])
    refused = await register(api, WORD_COUNT)
    await use(api, scopes=["work:write", "definitions:write"], expires_in=3600)

    assert refused.status_code == 403
    assert await changes(api, WORD_COUNT) == [("created", [])]


async def test_other_roles_register_nothing(api: Api):
    for role in (Role.ADMIN, Role.MEMBER, Role.VIEWER):
        assert (await register(api, WORD_COUNT, role=role)).status_code == 403


async def test_a_definition_of_another_kind_is_not_taken_over(
    api: Api, connection: psycopg.Connection
):
    connection.execute("insert into mainspring.definitions (key, kind) values ('own', 'python')")

    refused = await register(api, WORD_COUNT, {"key": "own"})

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_definition")
    assert "is a definition of the kind python" in refused.json()["detail"]
    assert (await api.get("/definitions/word_count")).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "mainspring.prune"},
        {"key": "a b"},
        {"key": "a", "arg_schema": {"type": "nonsense"}},
        {"key": "a", "function": "public.f"},
        {"key": "a", "revision": -1},
    ],
)
async def test_what_cannot_be_is_refused(api: Api, wrong: dict[str, Any]):
    refused = await register(api, WORD_COUNT, wrong)

    assert refused.status_code in (403, 422), refused.text
    assert (await api.get("/definitions/word_count")).status_code == 404


async def test_a_key_is_given_once(api: Api):
    assert (await register(api, WORD_COUNT, WORD_COUNT)).status_code == 422


async def test_the_audit_names_the_worker(api: Api):
    await register(api, WORD_COUNT)

    entries = (await api.get("/audit?tenant=*")).json()["items"]
    made = [entry["actor"] for entry in entries if entry["subject"] == "word_count"]
    assert made == ["far0"]


async def test_a_deactivated_definition_stays_so(api: Api):
    await register(api, WORD_COUNT)
    await api.post("/definitions/word_count/deactivate")

    answer = await register(api, {**WORD_COUNT, "timeout": 9})

    assert answer.json()["definitions"][0]["is_active"] is False


async def test_a_refusal_says_which_definition_and_which_field_of_it(
    api: Api, connection: psycopg.Connection
):
    connection.execute("insert into mainspring.definitions (key, kind) values ('own', 'python')")
    wrong: dict[str, list[dict[str, Any]]] = {
        "key": [{"key": "mainspring.x"}, {"key": "own"}, {"key": "a b"}],
        "arg_schema": [{"key": "b", "arg_schema": {"type": 1}}],
        "limit_by": [{"key": "b", "limit_by": "x"}],
    }

    paths = {
        (field, fault["path"])
        for field, asked in wrong.items()
        for each in asked
        for fault in (await register(api, WORD_COUNT, each)).json()["errors"]
    }

    assert paths == {(field, f"body.definitions.1.{field}") for field in wrong}
