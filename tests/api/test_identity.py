"""Who acts is a kind and an id; what it is called is for display, and one person has one vote."""

from typing import Any

import httpx
import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import digest, spell
from mainspring.services import people, tokens
from tests.support.api import Api
from tests.support.rows import insert_definition

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


async def session_of(api: Api, link: str) -> httpx.Cookies:
    """The cookies of a browser that has used a login link."""
    code = link.partition("code=")[2]
    await api.client.post("/login", data={"code": code}, headers=SAME_SITE)
    cookies = httpx.Cookies(api.client.cookies)
    api.client.cookies.clear()
    return cookies


async def logged_in(api: Api, name: str) -> httpx.Cookies:
    return await session_of(api, f"code={await tokens.open_login(api.database, name)}")


def browser(cookies: httpx.Cookies) -> dict[str, str]:
    return {**SAME_SITE, "Cookie": f"mainspring_session={cookies['mainspring_session']}"}


async def by_session(
    api: Api, cookies: httpx.Cookies, method: str, path: str, body: Any = None
) -> httpx.Response:
    return await api.client.request(method, f"/api/v1{path}", json=body, headers=browser(cookies))


async def by_token(api: Api, text: str, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {text}"}
    return await api.client.request(method, f"/api/v1{path}", json=body, headers=headers)


async def audited(api: Api, **asked: str) -> list[dict[str, Any]]:
    return list((await api.get("/audit", params=asked)).json()["items"])


@pytest.mark.parametrize(
    "name", ["operator", "Operator", "admin", "system", "mainspring", "worker", "scheduler", "SQL "]
)
async def test_names_that_would_mislead_are_reserved(api: Api, name: str):
    token = await api.post("/tokens", {"name": name, "role": "viewer"})
    person = await api.post("/people", {"name": name, "role": "viewer"})

    for answer in (token, person):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_option")
        assert "reserved" in answer.json()["detail"]


async def test_the_audit_tells_a_token_from_a_person_of_its_name(api: Api):
    await people.create(api.database, "bob", "admin", tenant_id="default")
    new = await tokens.create(api.database, "bob", "admin", tenant_id="default")
    cookies = await logged_in(api, "bob")

    await by_token(api, new.text, "POST", "/people", {"name": "cyd", "role": "viewer"})
    await by_session(api, cookies, "POST", "/people", {"name": "dan", "role": "viewer"})

    (cyd,) = await audited(api, noun="person", subject="cyd")
    (dan,) = await audited(api, noun="person", subject="dan")
    assert (cyd["actor"], dan["actor"]) == ("bob", "bob")
    assert cyd["actor_id"].startswith("token:")
    assert dan["actor_id"].startswith("person:")
    assert await audited(api, actor=cyd["actor_id"]) == [cyd]


async def test_who_logs_in_as_someone_by_a_link_of_another_is_seen(api: Api):
    made = await api.post("/people/ann/login", role=Role.ADMIN)
    cookies = await session_of(api, made.json()["url"])
    await api.client.post("/logout", headers=browser(cookies))

    end, login, link = await audited(api, noun="session") + await audited(api, noun="login_link")
    assert (link["actor"], link["action"], link["subject"]) == ("admin-default", "create", "ann")
    assert (login["actor"], login["action"], login["subject"]) == ("ann", "login", "ann")
    assert login["after"]["link_by"] == "admin-default"
    assert login["after"]["link_by_id"] == link["actor_id"]
    assert (end["actor"], end["action"], end["subject"]) == ("ann", "logout", "ann")
    assert end["actor_id"] == login["actor_id"]


@pytest.fixture
async def grave(api: Api, connection: psycopg.Connection) -> str:
    """A job that two have to approve."""
    insert_definition(connection, "grave", approvals_needed=2)
    made = await api.post("/jobs", {"definition": "grave"})
    return str(made.json()["id"])


async def mint(api: Api, answer: httpx.Response) -> str:
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def test_one_person_has_one_vote_by_session_and_by_every_token_they_made(
    api: Api, grave: str
):
    cookies = await logged_in(api, "ann")
    asked = {"name": "anns", "role": "admin"}
    first = await mint(api, await by_session(api, cookies, "POST", "/tokens", asked))
    again = {"name": "anns-own", "role": "admin"}
    second = await mint(api, await by_token(api, first, "POST", "/tokens", again))

    votes = [
        await by_session(api, cookies, "POST", f"/jobs/{grave}/approve"),
        await by_token(api, first, "POST", f"/jobs/{grave}/approve"),
        await by_token(api, second, "POST", f"/jobs/{grave}/approve"),
    ]

    assert [vote.json()["state"] for vote in votes] == ["awaiting_approval"] * 3
    told = (await api.get(f"/approvals/{grave}")).json()
    assert ([vote["actor"] for vote in told["votes"]], told["missing"]) == (["ann"], 1)
    assert (await api.get("/tokens/anns-own")).json()["person"] == "ann"


async def test_a_token_that_a_token_made_has_the_same_vote(api: Api, grave: str):
    whole = await tokens.create(api.database, "whole", "admin", tenant_id="default")
    asked = {"name": "child", "role": "admin"}
    child = await mint(api, await by_token(api, whole.text, "POST", "/tokens", asked))
    other = await tokens.create(api.database, "other", "admin", tenant_id="default")

    votes = [
        await by_token(api, text, "POST", f"/jobs/{grave}/approve")
        for text in (whole.text, child, other.text)
    ]

    states = [vote.json()["state"] for vote in votes]
    assert states == ["awaiting_approval", "awaiting_approval", "queued"]


async def test_a_vote_that_a_program_records_for_someone_is_theirs(api: Api, grave: str):
    cookies = await logged_in(api, "ann")

    own = await by_session(api, cookies, "POST", f"/jobs/{grave}/approve")
    recorded = await api.post(f"/jobs/{grave}/approve", {"by": "ann", "reason": "by phone"})
    other = await api.post(f"/jobs/{grave}/approve", {"by": "bob", "reason": "by phone"})

    states = [answer.json()["state"] for answer in (own, recorded, other)]
    assert states == ["awaiting_approval", "awaiting_approval", "queued"]
    (entry, *_) = await audited(api, noun="job", subject=grave)
    assert (entry["actor"], entry["actor_id"]) == ("bob", "name:bob")
    assert entry["reason"] == "by phone (recorded by ops)"


async def test_a_session_that_the_release_before_has_made_is_of_the_person_in_its_tenant(
    api: Api, connection: psycopg.Connection
):
    await people.create(api.database, "ann", "viewer", tenant_id="acme")
    text = spell(bytes(38))
    connection.execute(
        "insert into mainspring.tokens"
        " (kind, name, prefix, digest, role, tenant_id, expires_at, person, created_by)"
        " values ('session', 'ann', 'msk_a', %s, 'admin', 'acme', now() + interval '1 hour',"
        " 'ann', 'ann')",
        (digest(text),),
    )

    me = (await by_token(api, text, "GET", "/me")).json()

    assert (me["actor"], me["role"], me["tenant"]) == ("ann", "viewer", "acme")


async def test_a_session_of_nobody_lets_nobody_in(api: Api, connection: psycopg.Connection):
    text = spell(bytes(38))
    connection.execute(
        "insert into mainspring.tokens"
        " (kind, name, prefix, digest, role, tenant_id, expires_at, person, created_by)"
        " values ('session', 'eve', 'msk_a', %s, 'admin', 'acme', now() + interval '1 hour',"
        " 'eve', 'eve')",
        (digest(text),),
    )

    assert (await by_token(api, text, "GET", "/me")).status_code == 401


async def test_who_is_deleted_takes_along_the_tokens_they_made(api: Api):
    cookies = await logged_in(api, "ann")
    asked = {"name": "anns", "role": "admin"}
    made = await mint(api, await by_session(api, cookies, "POST", "/tokens", asked))

    await people.change(api.database, "ann", is_disabled=True)
    disabled = await by_token(api, made, "GET", "/jobs")
    await people.delete(api.database, "ann")
    deleted = await by_token(api, made, "GET", "/jobs")

    assert (disabled.status_code, deleted.status_code) == (401, 401)


async def test_names_are_each_tenants_own(api: Api):
    for path in ("/people", "/tokens"):
        for name in ("ann", "ci"):
            here = await api.post(path, {"name": name, "role": "viewer"}, role=Role.ADMIN)
            there = await api.post(
                path, {"name": name, "role": "member"}, role=Role.ADMIN, tenant="acme"
            )
            assert here.status_code in (201, 409)
            assert there.status_code == 201, there.text

    seen = await api.get("/people/ci", role=Role.ADMIN, tenant="acme")
    which = await api.get("/people/ci")
    named = await api.get("/people/ci", params={"tenant": "default"})
    revoked = await api.post("/tokens/ci/revoke", role=Role.ADMIN, tenant="acme")
    left = await api.get("/tokens/ci", role=Role.ADMIN)

    assert seen.json()["role"] == "member"
    assert (which.status_code, which.json()["code"]) == (409, "ambiguous_name")
    assert which.json()["detail"].startswith("'ci' is a name in the tenants acme and default")
    assert named.json()["role"] == "viewer"
    assert (revoked.json()["state"], left.json()["state"]) == ("revoked", "active")


async def test_a_tenant_cannot_forge_the_operator_whom_a_definition_names(
    api: Api, connection: psycopg.Connection
):
    insert_definition(connection, "gated", approvals_needed=1, approvers=["olga"])
    await people.create(api.database, "olga", "operator")
    job = (await api.post("/jobs", {"definition": "gated"}, role=Role.ADMIN)).json()["id"]
    await people.create(api.database, "olga", "admin", tenant_id="default")
    new = await tokens.create(api.database, "olga", "admin", tenant_id="default")
    code = await tokens.open_login(api.database, "olga", tenant_id="default")
    cookies = await session_of(api, f"code={code}")

    forged = await by_session(api, cookies, "POST", f"/jobs/{job}/approve")
    minted = await by_token(api, new.text, "POST", f"/jobs/{job}/approve")

    assert (forged.status_code, minted.status_code) == (403, 403)


async def test_an_admin_sees_of_workers_what_is_its_own(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.workers (expires_at, pid, concurrency, name, host,"
        " process_identity, queues, version)"
        " values (now() + interval '1 hour', 4711, 10, 'db7.internal:4711', 'db7.internal', 'x',"
        " '{default,acme-secret}', '1')"
    )
    asked = {"name": "robot", "queues": ["acme-secret"]}
    other = await api.post("/work/workers", asked, role=Role.WORKER, tenant="acme")
    assert other.status_code == 201, other.text

    seen = await api.get("/workers", role=Role.ADMIN)
    theirs = await api.get("/workers", role=Role.ADMIN, tenant="acme")
    everything = await api.get("/workers")

    (shared,) = seen.json()["items"]
    assert (shared["host"], shared["pid"], shared["queues"]) == (None, None, ["default"])
    for hidden in ("db7", "4711", "acme", "robot"):
        assert hidden not in seen.text
    assert [worker["name"] for worker in theirs.json()["items"]] == ["robot", shared["name"]]
    assert "db7" not in theirs.text
    hosts = [worker["host"] for worker in everything.json()["items"]]
    assert "db7.internal" in hosts
