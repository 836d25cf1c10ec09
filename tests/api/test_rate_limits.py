"""The rate limit: by who asks and from where, however a request is spelled."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence

import httpx
import pytest

from mainspring.api.addresses import client_of
from mainspring.api.middleware import RateLimiter
from mainspring.domain.access.roles import Role
from mainspring.settings import load
from tests.support.api import BASE, Api, serving


@pytest.fixture
async def slow(database_url: str) -> AsyncIterator[Api]:
    """An API where one caller may ask 20 times at once, and then once a second."""
    async with serving(database_url, requests_per_minute=60, trusted_proxies="10.0.0.0/8") as api:
        yield api


async def refused(
    api: Api, headers: Sequence[Mapping[str, str]], *, address: str = "192.0.2.1"
) -> list[bool]:
    """Whether each of the requests was one too many."""
    transport = httpx.ASGITransport(api.app, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        answers = [await client.get("/api/v1/me", headers=each) for each in headers]
    return [answer.status_code == 429 for answer in answers]


def spelled(token: str) -> list[Mapping[str, str]]:
    schemes = ("Bearer", "bearer", "BEARER", "bEARER")
    return [
        {"Authorization": f"{schemes[number % 4]} {' ' * (number // 4)}{token}"}
        for number in range(40)
    ]


async def test_spellings_of_a_header_are_one_caller(slow: Api):
    assert any(await refused(slow, spelled(slow.tokens["default", Role.ADMIN])))


async def test_random_tokens_are_one_caller(slow: Api):
    guesses = [{"Authorization": f"Bearer msk_{secrets.token_hex(20)}"} for _ in range(40)]

    assert any(await refused(slow, guesses))


async def test_random_cookies_are_one_caller(slow: Api):
    assert any(await refused(slow, [{"Cookie": f"a={number}"} for number in range(40)]))


async def test_a_cookie_beside_a_token_makes_no_other_caller(slow: Api):
    token = slow.tokens["default", Role.ADMIN]
    given = [
        {"Authorization": f"Bearer {token}", "Cookie": f"mainspring_session={number}"}
        for number in range(40)
    ]

    assert any(await refused(slow, given))


async def test_who_guesses_keeps_no_token_at_the_same_address_waiting(slow: Api):
    known = {"Authorization": f"Bearer {slow.tokens['default', Role.ADMIN]}"}
    assert await refused(slow, [known]) == [False]
    assert any(await refused(slow, [{}] * 40))

    assert await refused(slow, [known]) == [False]


async def test_one_token_at_two_addresses_is_two_callers(slow: Api):
    known = {"Authorization": f"Bearer {slow.tokens['default', Role.ADMIN]}"}
    assert any(await refused(slow, [known] * 40))

    assert await refused(slow, [known], address="192.0.2.2") == [False]


async def test_a_forwarded_address_is_believed_from_a_proxy_alone(slow: Api):
    claims = [{"X-Forwarded-For": f"198.51.100.{number}"} for number in range(40)]

    assert any(await refused(slow, claims, address="192.0.2.1"))
    assert not any(await refused(slow, claims, address="10.0.0.1"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.7, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"),
        ("::ffff:10.0.0.1", "[2001:db8:1:2:3::4]:99", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "", "2001:db8:1:2::/64"),
        ("", "198.51.100.7", ""),
    ],
)
def test_the_client_is_the_last_address_that_no_proxy_has(peer: str, forwarded: str, client: str):
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    proxies = load(database_url="postgresql:///x", trusted_proxies="10.0.0.0/8").proxy_networks

    assert client_of({"client": (peer, 1), "headers": headers}, proxies) == client


def test_new_callers_do_not_make_others_forgotten():
    limiter = RateLimiter(60)
    while limiter.take("loud", now=0.0):
        pass

    for number in range(9_999):
        limiter.take(number, now=0.0)

    assert not limiter.take("loud", now=0.0)
