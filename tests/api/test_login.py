"""Coming in: tokens, sessions, logins, and what every answer carries."""

import re
from datetime import timedelta

import httpx
import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.services import people, tokens
from tests.support.api import BASE, Api, serving

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic dXNlcjpwYXNz",
        "Bearer msk_aaaaaaaa_" + "a" * 43,
        "Bearer msk_aaaaaaaa_" + "a" * 43 + "\tx",
    ],
)
async def test_who_shows_no_good_token_is_not_let_in(api: Api, header: str | None):
    headers = {} if header is None else {"Authorization": header}
    answer = await api.client.get("/api/v1/jobs", headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"
    assert "redacted" not in answer.json()["detail"]


async def test_a_token_that_was_revoked_is_refused_at_once(api: Api):
    new = await tokens.create(api.database, "ci", "admin", tenant_id="default")
    headers = {"Authorization": f"Bearer {new.text}"}
    before = await api.client.get("/api/v1/jobs", headers=headers)

    await api.post("/tokens/ci/revoke")
    after = await api.client.get("/api/v1/jobs", headers=headers)

    assert (before.status_code, after.status_code) == (200, 401)
    assert (await api.get("/tokens/ci")).json()["state"] == "revoked"


async def test_a_token_that_has_expired_is_refused(api: Api, connection: psycopg.Connection):
    new = await tokens.create(
        api.database, "ci", "admin", tenant_id="default", life=timedelta(hours=1)
    )
    connection.execute(
        "update mainspring.tokens set expires_at = now() - interval '1 second' where name = 'ci'"
    )

    answer = await api.client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {new.text}"})

    assert answer.status_code == 401


async def test_only_the_digest_of_a_token_is_kept(api: Api, connection: psycopg.Connection):
    made = await api.post("/tokens", {"name": "ci", "role": "viewer", "scopes": ["jobs:read"]})
    text = made.json()["token"]

    assert made.status_code == 201
    assert text.startswith(made.json()["details"]["prefix"])
    for (table,) in connection.execute(
        "select c.oid::regclass::text from pg_class as c"
        " where c.relnamespace = 'mainspring'::regnamespace and c.relkind = 'r'"
    ).fetchall():
        rows = connection.execute(f"select t::text from {table} as t").fetchall()
        assert not any(text in row[0] for row in rows), table
    assert text not in (await api.get("/tokens/ci")).text


async def test_a_scope_narrows_what_a_token_may(api: Api):
    new = await tokens.create(
        api.database, "ci", "admin", tenant_id="default", scopes=["jobs:read"]
    )
    headers = {"Authorization": f"Bearer {new.text}"}

    read = await api.client.get("/api/v1/jobs", headers=headers)
    written = await api.client.post("/api/v1/jobs", headers=headers, json={"definition": "work"})
    other = await api.client.get("/api/v1/schedules", headers=headers)
    me = await api.client.get("/api/v1/me", headers=headers)

    assert (read.status_code, written.status_code, other.status_code) == (200, 403, 403)
    assert "jobs:write" in written.json()["detail"]
    assert (me.json()["role"], me.json()["scopes"]) == ("admin", ["jobs:read"])


async def test_an_admin_cannot_make_an_operator(api: Api):
    token = await api.post("/tokens", {"name": "big", "role": "operator"}, role=Role.ADMIN)
    person = await api.post("/people", {"name": "big", "role": "operator"}, role=Role.ADMIN)
    grown = await api.ask("PATCH", "/people/ann", json={"role": "operator"}, role=Role.ADMIN)

    assert [token.status_code, person.status_code, grown.status_code] == [403, 403, 403]


async def test_a_login_link_gives_one_session_once(api: Api):
    link = (await api.post("/people/ann/login")).json()["url"]
    code = link.partition("code=")[2]

    looked = await api.client.get(f"/login?code={code}")
    entered = await api.client.post("/login", data={"code": code}, headers=SAME_SITE)
    again = await api.client.post("/login", data={"code": code}, headers=SAME_SITE)

    assert looked.status_code == 200
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"]
    assert re.search(r"HttpOnly", cookie)
    assert re.search(r"SameSite=strict", cookie)
    assert again.status_code == 401
    assert "ann" in (await api.client.get("/")).text
    assert (await api.client.get("/api/v1/me")).json()["actor"] == "ann"


async def test_a_browser_may_log_in_over_plain_http(api: Api):
    """There it sends Origin alone, and its site's own name only if the policy lets it."""
    code = await tokens.open_login(api.database, "ann")
    page = await api.client.get(f"/login?code={code}")

    entered = await api.client.post("/login", data={"code": code}, headers={"Origin": BASE})

    assert page.headers["referrer-policy"] == "same-origin"
    assert entered.status_code == 303


async def logged_in(api: Api) -> httpx.AsyncClient:
    code = await tokens.open_login(api.database, "ann")
    await api.client.post("/login", data={"code": code}, headers=SAME_SITE)
    return api.client


async def test_a_command_on_the_database_is_no_change_that_the_audit_tells(api: Api):
    before = (await api.get("/audit")).json()["items"]

    await tokens.log_out(api.database, await tokens.open_console(api.database))

    assert (await api.get("/audit")).json()["items"] == before
    assert before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.test"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": BASE}, 201),
    ],
)
async def test_a_session_is_of_no_use_to_other_sites(
    api: Api, headers: dict[str, str], status: int
):
    client = await logged_in(api)

    answer = await client.post("/api/v1/jobs", json={"definition": "work"}, headers=headers)

    assert answer.status_code == status, answer.text


async def test_who_logs_out_or_is_disabled_is_out(api: Api):
    client = await logged_in(api)
    assert (await client.get("/api/v1/me")).status_code == 200
    session = client.cookies["mainspring_session"]

    await client.post("/logout", headers=SAME_SITE)
    client.cookies.set("mainspring_session", session)
    assert (await client.get("/api/v1/jobs")).status_code == 401

    client.cookies.clear()
    await logged_in(api)
    await people.change(api.database, "ann", is_disabled=True)
    assert (await client.get("/api/v1/jobs")).status_code == 401


async def test_every_answer_is_safe_to_show(api: Api):
    for path in ("/", "/api/v1/jobs", "/api/v1/nothing", "/health"):
        headers = (await api.client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


async def test_no_other_site_is_told_that_it_may(api: Api):
    answer = await api.client.options(
        "/api/v1/jobs",
        headers={"Origin": "https://evil.test", "Access-Control-Request-Method": "POST"},
    )

    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


async def test_a_huge_request_is_refused(api: Api):
    body = b'{"definition": "work", "payload": {"a": "' + b"a" * 9_000_000 + b'"}}'

    async def in_pieces():
        for start in range(0, len(body), 1_000_000):
            yield body[start : start + 1_000_000]

    told = await api.ask("POST", "/jobs", content=body)
    untold = await api.ask("POST", "/jobs", content=in_pieces())
    payload = await api.post("/jobs", {"definition": "work", "payload": {"a": "a" * 1_100_000}})

    assert (told.status_code, told.json()["code"]) == (413, "request_too_large")
    assert (untold.status_code, untold.json()["code"]) == (413, "request_too_large")
    assert (payload.status_code, payload.json()["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"definition": "work", "payload": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b'{"definition": "work", "payload": {"a": NaN}}',
        b"\xff\xfe",
        b"null",
        b'"text"',
    ],
)
async def test_what_is_not_json_of_the_right_shape_is_refused(api: Api, content: bytes):
    answer = await api.ask(
        "POST", "/jobs", content=content, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "invalid_request"


@pytest.mark.parametrize(
    "cursor", ["x", "bm90IGpzb24", "IjEi", "LTE", "MTAwMDAwMDAwMDAwMDAwMDAwMDA", "é"]
)
async def test_a_cursor_that_is_none_of_ours_is_refused(api: Api, cursor: str):
    answer = await api.get("/jobs", params={"cursor": cursor})

    assert answer.status_code == 422
    assert "cursor" in answer.json()["detail"]


async def test_two_editors_do_not_overwrite_each_other(api: Api):
    await api.post("/schedules", {"name": "nightly", "definition": "work", "cron": "0 2 * * *"})
    seen = await api.get("/schedules/nightly")
    mine = {"If-Match": seen.headers["etag"]}

    first = await api.ask("PATCH", "/schedules/nightly", json={"cron": "0 3 * * *"}, headers=mine)
    second = await api.ask("PATCH", "/schedules/nightly", json={"cron": "0 4 * * *"}, headers=mine)

    assert first.status_code == 200
    assert (second.status_code, second.json()["code"]) == (412, "precondition_failed")
    assert (await api.get("/schedules/nightly")).json()["cron"] == "0 3 * * *"
    again = {"If-Match": first.headers["etag"]}
    assert (
        await api.ask("PATCH", "/schedules/nightly", json={"cron": "0 4 * * *"}, headers=again)
    ).status_code == 200


async def test_a_create_that_is_asked_for_twice_with_one_key_is_done_once(api: Api):
    key = {"Idempotency-Key": "nightly-1"}
    body = {"name": "nightly", "definition": "work", "cron": "0 2 * * *"}

    first = await api.post("/schedules", body, headers=key)
    again = await api.post("/schedules", body, headers=key)
    other = await api.post("/schedules", {**body, "cron": "0 3 * * *"}, headers=key)
    without = await api.post("/schedules", body)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (409, "replay_conflict")
    assert (without.status_code, without.json()["code"]) == (409, "duplicate_schedule")


async def test_one_caller_cannot_ask_without_end(database_url: str):
    async with serving(database_url, requests_per_minute=60) as api:
        answers = [await api.get("/me") for _ in range(40)]
        other = await api.get("/me", role=Role.VIEWER)

    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "1"
    assert other.status_code == 200


async def test_a_database_that_went_away_is_told_as_such(api: Api, connection: psycopg.Connection):
    await api.get("/jobs")
    connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )

    answers = [await api.get("/jobs") for _ in range(3)]

    assert {answer.status_code for answer in answers} <= {200, 503}
    assert answers[-1].status_code == 200


async def test_paths_and_methods_that_are_none_are_told_in_the_same_shape(api: Api):
    nowhere = await api.get("/nothing")
    wrong = await api.ask("PUT", "/jobs")

    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "no_such_path")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert wrong.headers["content-type"] == "application/problem+json"
    assert wrong.headers["allow"] == "GET, POST"


EVIL = "a\r\nX-Evil: 1"


async def test_nothing_that_is_said_becomes_a_header(api: Api):
    said = "a%0d%0aX-Evil:%201"
    answers = [
        await api.client.get(f"/{said}"),
        await api.client.get(f"/login?code={said}"),
        await api.client.get(f"/login/oidc/callback?state={said}&code={said}"),
        await api.client.post("/login", content=f"code={said}", headers=SAME_SITE),
        await api.get(f"/schedules/{said}"),
        await api.get(f"/jobs?cursor={said}"),
        await api.get("/jobs", params={"tenant": EVIL}),
        await api.post("/jobs", {"definition": EVIL}),
        await api.post("/tokens", {"name": EVIL, "role": "viewer"}),
        await api.post("/people", {"name": EVIL, "role": "viewer"}),
        await api.post("/tenants", {"name": EVIL}),
        await api.post("/schedules", {"name": EVIL, "definition": "work", "cron": "@daily"}),
        await api.post("/triggers", {"name": EVIL, "event": "a.b", "definition": "work"}),
    ]

    for answer in answers:
        assert answer.status_code < 500, answer.text
        assert "x-evil" not in answer.headers
        assert not any("\r" in value or "\n" in value for value in answer.headers.values())
    assert [answer.status_code for answer in answers[-6:]] == [422] * 6
