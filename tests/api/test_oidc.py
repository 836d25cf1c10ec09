"""Logging in through a provider: who it vouches for comes in, and nobody else."""

import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import psycopg
import pytest

from mainspring import settings
from mainspring.api.oidc import Key
from mainspring.domain.errors import SettingsError
from mainspring.services import people, tokens
from mainspring.store import tokens as token_store
from tests.support.api import BASE, Api, serving
from tests.support.oidc import CLIENT, OTHER_KEY, SECRET, Provider, provider

ANN = "ann@example.com"


@pytest.fixture
def known() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture
async def site(database_url: str, known: Provider) -> AsyncIterator[Api]:
    """An API that knows the provider, and the person that it vouches for."""
    flags = {"oidc_client_id": CLIENT, "oidc_client_secret": SECRET}
    async with serving(database_url, oidc_issuer=known.issuer, **flags) as served:
        await people.create(served.database, ANN, "member", tenant_id="default")
        yield served


async def depart(site: Api) -> httpx.Response:
    """Off to the provider."""
    answer = await site.client.get("/login/oidc")
    assert answer.status_code == 303, answer.text
    return answer


async def come_back(site: Api) -> str:
    """Through the provider's page; where it sends the browser."""
    entrance = (await depart(site)).headers["location"]
    async with httpx.AsyncClient(verify=False) as browser:
        sent = await browser.get(entrance)
    location = sent.headers["location"]
    assert location.startswith(f"{BASE}/login/oidc/callback?")
    return str(location)


async def log_in(site: Api) -> httpx.Response:
    return await site.client.get(await come_back(site))


async def is_in(site: Api) -> bool:
    return (await site.client.get("/api/v1/me")).status_code == 200


async def test_who_the_provider_vouches_for_comes_in(site: Api):
    page = await site.client.get("/login")
    answer = await log_in(site)

    assert 'href="/login/oidc">Log in with 127.0.0.1:' in page.text
    assert answer.status_code == 200
    assert 'content="0; url=/"' in answer.text
    session = next(
        each for each in answer.headers.get_list("set-cookie") if "mainspring_session" in each
    )
    assert "HttpOnly" in session
    assert "SameSite=strict" in session
    assert (await site.client.get("/api/v1/me")).json()["actor"] == ANN
    assert ANN in (await site.client.get("/")).text


async def test_the_key_of_a_login_is_the_browsers_alone(site: Api):
    answer = await depart(site)
    cookie = answer.headers["set-cookie"]
    key = site.client.cookies["mainspring_oidc"]

    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/login/oidc" in cookie
    assert key not in answer.headers["location"]


STRANGE: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "another"}, "nonce"),
    ({"aud": "another"}, "aud"),
    ({"aud": [CLIENT, "another"]}, "another client"),
    ({"aud": [CLIENT, "another"], "azp": "another"}, "another client"),
    ({"iss": "https://another.test"}, "iss"),
    ({"exp": int(time.time()) - 120}, "expired"),
    ({"exp": "never"}, "exp"),
    ({"iat": int(time.time()) + 3600}, "in the future"),
    ({"email_verified": False}, "has not verified"),
    ({"email_verified": None}, "has not verified"),
    ({"email": None}, "ID token has no claim email"),
    ({"email": [ANN]}, "ID token has no claim email"),
]


async def test_a_token_that_is_not_for_this_login_lets_nobody_in(site: Api, known: Provider):
    good = dict(known.claims)
    for claims, said in STRANGE:
        known.claims = {**good, **claims}
        answer = await log_in(site)
        assert (answer.status_code, said in answer.text) == (401, True), (claims, answer.text)
        assert not await is_in(site)


async def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(site: Api, known: Provider):
    known.is_unsigned = True
    unsigned = await log_in(site)
    known.is_unsigned, known.key = False, OTHER_KEY
    forged = await log_in(site)

    for answer in (unsigned, forged):
        assert answer.status_code == 401
        assert "ID token is invalid" in answer.text
    assert not await is_in(site)


async def test_a_login_is_used_once(site: Api):
    location = await come_back(site)
    key = site.client.cookies["mainspring_oidc"]
    assert (await site.client.get(location)).status_code == 200

    site.client.cookies.clear()
    site.client.cookies.set("mainspring_oidc", key)
    again = await site.client.get(location)

    assert again.status_code == 401
    assert "was already used" in again.text
    assert not await is_in(site)


async def test_a_login_that_was_begun_elsewhere_is_refused(site: Api):
    strange = await come_back(site)
    site.client.cookies.clear()
    without_key = await site.client.get(strange)
    theirs = await come_back(site)
    await depart(site)
    with_another = await site.client.get(theirs)
    refused = [without_key, with_another]
    secret = await tokens.cookie_key(site.database)
    for seconds, signed_with in ((-1, secret), (600, b"guess")):
        site.client.cookies.clear()
        location = await come_back(site)
        key = Key.read(site.client.cookies["mainspring_oidc"], secret)
        assert key is not None
        cookie = key.signed(signed_with, expires_at=time.time() + seconds)
        site.client.cookies.clear()
        site.client.cookies.set("mainspring_oidc", cookie)
        refused.append(await site.client.get(location))

    for answer in refused:
        assert answer.status_code == 401
        assert "was started in another browser" in answer.text
    assert not await is_in(site)


async def test_a_login_that_is_begun_leaves_no_row(site: Api, connection: psycopg.Connection):
    for _ in range(5):
        location = await come_back(site)
    await site.client.get(location.replace("code=", "code=x"))

    for table in (b"login_keys", b"tokens where kind = 'login'"):
        assert connection.execute(b"select from mainspring." + table).fetchall() == []


async def test_logins_that_were_completed_are_forgotten(
    site: Api, aconnection: psycopg.AsyncConnection
):
    await log_in(site)
    await aconnection.execute("update mainspring.login_keys set expires_at = now()")
    await log_in(site)

    await token_store.prune(aconnection)

    left = await (await aconnection.execute("select from mainspring.login_keys")).fetchall()
    assert len(left) == 1


async def test_another_provider_cannot_answer(site: Api, known: Provider):
    location = await come_back(site)

    answer = await site.client.get(location.replace("127.0.0.1%3A", "evil.test%3A"))

    assert (answer.status_code, "a different provider" in answer.text) == (401, True)


async def test_who_is_not_known_is_told_whom_to_ask(site: Api, known: Provider):
    for name in ("eve@example.com", "<b>eve</b>", "a\x00b", "x" * 200):
        known.claims["email"] = name
        answer = await log_in(site)
        assert answer.status_code == 403
        assert "Ask the operator of this server" in answer.text
        assert "<b>eve</b>" not in answer.text
    assert not await is_in(site)


async def test_who_is_disabled_stays_out(site: Api):
    await people.change(site.database, ANN, is_disabled=True)

    assert (await log_in(site)).status_code == 403
    assert not await is_in(site)


async def test_who_has_the_name_in_two_tenants_chooses_one(site: Api):
    await people.create(site.database, ANN, "viewer", tenant_id="acme")

    page = await log_in(site)
    codes = re.findall(r'value="(msk_[^"]+)"', page.text)
    entered = await site.client.post(
        "/login", data={"code": codes[0]}, headers={"Sec-Fetch-Site": "same-origin"}
    )

    assert "Log in to tenant acme" in page.text
    assert "Log in to tenant default" in page.text
    assert "mainspring_session" not in page.headers.get("set-cookie", "")
    assert entered.status_code == 303
    assert (await site.client.get("/api/v1/me")).json()["tenant"] == "acme"
    (login, *_) = (await site.get("/audit", params={"noun": "session"})).json()["items"]
    assert (login["action"], login["after"]["link_by"]) == ("login", "provider")


async def test_a_refusal_of_the_provider_is_shown(site: Api):
    location = await come_back(site)
    state = location.partition("state=")[2].partition("&")[0]

    answer = await site.client.get(
        "/login/oidc/callback", params={"state": state, "error": "access_denied <b>"}
    )

    assert answer.status_code == 401
    assert "access_denied &lt;b&gt;" in answer.text


async def test_a_provider_that_is_down_is_told_as_such(site: Api, known: Provider):
    location = await come_back(site)
    known.stop()
    during = await site.client.get(location)
    site.app.state.server.provider._known = None
    before = await site.client.get("/login/oidc")

    for answer in (during, before):
        assert answer.status_code == 401
        assert "cannot reach the provider" in answer.text


async def test_a_wrong_secret_is_told_as_such(database_url: str, known: Provider):
    flags = {"oidc_client_id": CLIENT, "oidc_client_secret": "wrong"}
    async with serving(database_url, oidc_issuer=known.issuer, **flags) as served:
        answer = await log_in(served)

    assert answer.status_code == 401
    assert "the provider answered 401: invalid_client" in answer.text
    assert "wrong" not in answer.text


async def test_behind_a_proxy_people_come_back_to_its_address(database_url: str, known: Provider):
    flags = {"oidc_client_id": CLIENT, "public_url": "https://jobs.example.com/mainspring/"}
    flags["allowed_hosts"] = "mainspring.test"
    async with serving(database_url, oidc_issuer=known.issuer, **flags) as served:
        answer = await depart(served)
        link = (await served.post("/people/ann/login")).json()["url"]

    callback = "redirect_uri=https%3A%2F%2Fjobs.example.com%2Fmainspring%2Flogin%2Foidc%2Fcallback"
    assert callback in answer.headers["location"]
    assert "Secure" in answer.headers["set-cookie"]
    assert link.startswith("https://jobs.example.com/mainspring/login?code=")


async def test_without_a_provider_there_is_no_such_way(api: Api):
    assert (await api.client.get("/login/oidc")).status_code == 404
    assert (await api.client.get("/login/oidc/callback?state=x&code=y")).status_code == 404
    assert "Log in with" not in (await api.client.get("/login")).text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"oidc_issuer": "https://login.example.com"}, "oidc_client_id: is required"),
        ({"oidc_issuer": "http://login.example.com", "oidc_client_id": "x"}, "must begin with"),
        ({"oidc_issuer": "login.example.com", "oidc_client_id": "x"}, "must be a URL"),
        ({"public_url": "https://jobs.example.com?x=1"}, "must be a URL"),
        ({"public_url": "https://[jobs"}, "public_url"),
    ],
)
def test_settings_that_cannot_work_are_refused(flags: dict[str, str], said: str):
    with pytest.raises(SettingsError, match=said):
        settings.load(**flags)
