"""What a caller creates has at most its own scopes, role, tenant and expiry."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from mainspring.domain.access.roles import Role
from mainspring.services import people, tokens
from tests.support.api import Api

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


async def token(api: Api, name: str, role: str = "admin", **given: Any) -> str:
    tenant = None if role == "operator" else "default"
    return (await tokens.create(api.database, name, role, tenant_id=tenant, **given)).text


async def ask(api: Api, text: str, method: str, path: str, body: Any = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {text}"}
    return await api.client.request(method, f"/api/v1{path}", headers=headers, json=body)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    return answer.status_code, answer.json()["code"], answer.json()["detail"]


@pytest.mark.parametrize("scopes", [None, ["*:write"], ["jobs:write", "tokens:write"]])
async def test_a_scoped_token_makes_no_token_with_more_scopes(api: Api, scopes: list[str] | None):
    own = await token(api, "minter", scopes=["tokens:write"])

    answer = await ask(
        api, own, "POST", "/tokens", {"name": "more", "role": "admin", "scopes": scopes}
    )

    status, code, detail = refusal(answer)
    assert (status, code) == (403, "forbidden")
    assert detail.endswith("pass scopes that this token has: tokens:write")


async def test_a_scoped_token_makes_one_with_the_same_scopes_or_fewer(api: Api):
    own = await token(api, "minter", scopes=["jobs:write", "tokens:write"])

    made = await ask(
        api, own, "POST", "/tokens", {"name": "less", "role": "member", "scopes": ["jobs:read"]}
    )

    assert made.status_code == 201, made.text
    assert made.json()["details"]["scopes"] == ["jobs:read"]


@pytest.mark.parametrize("asked", [None, 7200])
async def test_a_token_that_expires_makes_none_that_outlives_it(api: Api, asked: int | None):
    own = await token(api, "brief", life=timedelta(hours=1))

    refused = await ask(
        api, own, "POST", "/tokens", {"name": "long", "role": "viewer", "expires_in": asked}
    )
    made = await ask(
        api, own, "POST", "/tokens", {"name": "short", "role": "viewer", "expires_in": 3590}
    )

    assert refusal(refused)[:2] == (403, "forbidden")
    assert "expires_in" in refusal(refused)[2]
    kept = (await api.get("/tokens/brief")).json()["expires_at"]
    short = made.json()["details"]["expires_at"]
    assert datetime.fromisoformat(short) <= datetime.fromisoformat(kept)


@pytest.mark.parametrize("scopes", [["people:write"], ["people:write", "*:read"]])
async def test_a_scoped_token_lets_nobody_in_who_may_more(api: Api, scopes: list[str]):
    own = await token(api, "hr", scopes=scopes)

    made = await ask(api, own, "POST", "/people", {"name": "eve", "role": "admin"})
    grown = await ask(api, own, "PATCH", "/people/ann", {"role": "member"})
    link = await ask(api, own, "POST", "/people/ann/login")

    assert [refusal(answer)[:2] for answer in (made, grown, link)] == [(403, "forbidden")] * 3
    assert "scope" in refusal(link)[2]


async def test_a_scoped_token_makes_people_who_may_no_more_than_it(api: Api):
    own = await token(api, "hr", scopes=["people:write", "*:read"])

    made = await ask(api, own, "POST", "/people", {"name": "vic", "role": "viewer"})

    assert made.status_code == 201, made.text


async def test_a_scoped_token_does_not_let_a_disabled_admin_in_again(api: Api):
    await people.change(api.database, "ann", is_disabled=True)
    own = await token(api, "hr", scopes=["people:write"])

    answer = await ask(api, own, "PATCH", "/people/ann", {"is_enabled": True})

    assert answer.status_code == 403
    assert not (await api.get("/people/ann")).json()["is_enabled"]


async def test_a_login_link_is_no_way_around_an_expiry(api: Api):
    own = await token(api, "brief", life=timedelta(hours=1))
    link = (await ask(api, own, "POST", "/people/ann/login")).json()["url"]
    code = link.partition("code=")[2]
    await api.client.post("/login", data={"code": code}, headers=SAME_SITE)

    lasting = await api.client.post(
        "/api/v1/tokens", json={"name": "lasting", "role": "admin"}, headers=SAME_SITE
    )

    assert lasting.status_code == 403, lasting.text


async def test_an_admin_makes_no_link_for_an_operator(api: Api):
    await people.create(api.database, "olga", "operator")

    answer = await api.post("/people/olga/login", role=Role.ADMIN)

    assert answer.status_code == 404


async def test_callers_without_scopes_go_on_as_before(api: Api):
    own = await token(api, "whole")

    made = await ask(api, own, "POST", "/tokens", {"name": "another", "role": "admin"})
    link = await ask(api, own, "POST", "/people/ann/login")

    assert (made.status_code, link.status_code) == (201, 201)
    assert made.json()["details"]["expires_at"] is None
