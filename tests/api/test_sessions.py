"""/sessions: who is logged in where, and ending it; and hosts that are believed."""

import asyncio
import socket

import httpx
import psycopg
import pytest

from mainspring.api.app import create_app
from mainspring.api.server import Server
from mainspring.db.database import Database
from mainspring.domain.access.roles import Role
from mainspring.services import people, tokens
from mainspring.settings import load
from tests.support.api import Api, serving

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


async def log_in(api: Api, name: str, tenant: str | None = None) -> dict[str, str]:
    """The headers of a browser in which someone is logged in."""
    code = await tokens.open_login(api.database, name, tenant_id=tenant)
    answer = await api.client.post("/login", data={"code": code}, headers=SAME_SITE)
    api.client.cookies.clear()
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {**SAME_SITE, "Cookie": cookie}


async def status(api: Api, browser: dict[str, str]) -> int:
    return (await api.client.get("/api/v1/jobs", headers=browser)).status_code


async def test_a_person_lists_and_ends_their_own_sessions(api: Api):
    await people.create(api.database, "bob", "member", tenant_id="default")
    here, there = await log_in(api, "bob"), await log_in(api, "bob")
    await log_in(api, "ann")

    listed = (await api.client.get("/api/v1/sessions", headers=here)).json()["items"]
    other = next(each for each in listed if not each["is_current"])
    ended = await api.client.delete(f"/api/v1/sessions/{other['id']}", headers=here)
    gone = await api.client.delete(f"/api/v1/sessions/{other['id']}", headers=here)

    assert [each["person"] for each in listed] == ["bob", "bob"]
    assert (ended.status_code, gone.status_code) == (204, 404)
    assert (await status(api, here), await status(api, there)) == (200, 401)


async def test_a_member_cannot_end_the_session_of_another(api: Api, connection: psycopg.Connection):
    await people.create(api.database, "bob", "member", tenant_id="default")
    bob, ann = await log_in(api, "bob"), await log_in(api, "ann")
    ((number,),) = connection.execute(
        "select token_id from mainspring.tokens where kind = 'session' and person = 'ann'"
    ).fetchall()

    answer = await api.client.delete(f"/api/v1/sessions/{number}", headers=bob)

    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")
    assert await status(api, ann) == 200


async def test_an_admin_ends_those_of_its_tenant_alone(api: Api, connection: psycopg.Connection):
    await people.create(api.database, "zoe", "member", tenant_id="acme")
    zoe, ann = await log_in(api, "zoe"), await log_in(api, "ann")
    await people.create(api.database, "olga", "operator")
    olga = await log_in(api, "olga")

    listed = (await api.get("/sessions", role=Role.ADMIN)).json()["items"]
    for (number,) in connection.execute(
        "select token_id from mainspring.tokens where kind = 'session'"
    ).fetchall():
        await api.ask("DELETE", f"/sessions/{number}", role=Role.ADMIN)
    await api.ask("DELETE", "/people/zoe/sessions", role=Role.ADMIN)

    assert [each["person"] for each in listed] == ["ann"]
    states = [await status(api, browser) for browser in (ann, zoe, olga)]
    assert states == [401, 200, 200]
    assert (await api.ask("DELETE", "/people/zoe/sessions")).json() == {"ended": 1}
    assert await status(api, zoe) == 401


async def test_what_ends_a_session_is_in_the_audit(api: Api):
    await log_in(api, "ann")
    (session,) = (await api.get("/sessions", params={"person": "ann"})).json()["items"]

    await api.ask("DELETE", f"/sessions/{session['id']}", role=Role.ADMIN)

    (entry, *_) = (await api.get("/audit", params={"noun": "session"})).json()["items"]
    assert (entry["actor"], entry["action"], entry["subject"]) == ("admin-default", "end", "ann")


async def test_a_session_is_ended_by_itself(api: Api):
    browser = await log_in(api, "ann")
    bearer = {"Authorization": "Bearer " + browser["Cookie"].partition("=")[2]}

    ended = await api.client.delete("/api/v1/sessions/current", headers=bearer)
    token = await api.ask("DELETE", "/sessions/current")

    assert (ended.status_code, token.status_code) == (204, 404)
    assert await status(api, browser) == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.9.8.7", "[::2]"])
async def test_a_host_that_is_not_ours_is_refused_and_in_no_link(database_url: str, host: str):
    async with serving(database_url, public_url=None) as api:
        server = Server(api.app, host="127.0.0.1", port=0)
        running, url = asyncio.create_task(server.run()), server.url
        text = api.tokens["*", Role.OPERATOR]
        headers = {"Authorization": f"Bearer {text}"}
        async with httpx.AsyncClient(base_url=url, headers=headers) as client:
            forged = await client.post("/api/v1/people/ann/login", headers={"Host": host})
            link = await client.post("/api/v1/people/ann/login", headers={"Host": "localhost:1"})
        server.stop()
        await running

    assert (forged.status_code, forged.json()["code"]) == (400, "unknown_host")
    assert forged.json()["detail"].endswith("set public_url or allowed_hosts on the server")
    assert link.json()["url"].startswith(f"{url}/login?code=")


async def test_on_every_address_any_address_is_taken_and_only_the_machines_name(api: Api):
    api.app.state.listens_on = "0.0.0.0"
    hosts = ["10.9.8.7:8080", "[fe80::1]", socket.gethostname(), "evil.example", "10.9.8.7.test"]

    statuses = [
        (await api.client.get("/login", headers={"Host": host})).status_code for host in hosts
    ]

    assert statuses == [200, 200, 200, 400, 400]


async def test_the_hosts_of_the_settings_are_taken(database_url: str):
    known = {"public_url": "https://jobs.example.com/ms", "allowed_hosts": "a.test,*.b.test"}
    database = Database(load(database_url=database_url, **known))
    app = create_app(database, version="test")
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    hosts = ["jobs.example.com", "JOBS.example.com:443", "localhost", "a.test", "x.b.test"]
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        taken = [(await client.get("/login", headers={"Host": host})).status_code for host in hosts]
        other = await client.get("/login", headers={"Host": "b.test"})
    await database.aclose()

    assert taken == [200] * len(hosts)
    assert other.status_code == 400
