"""Streams: a caller has so many, and none waits for the lists of another tenant."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import httpx
import psycopg
import pytest

from mainspring.api import streams
from mainspring.api.server import Server
from mainspring.api.streams import Hub
from mainspring.domain.access.roles import Role
from mainspring.domain.types import JobId
from tests.support.api import Api
from tests.support.log_lines import captured_lines, named
from tests.support.waiting import await_until


@pytest.fixture
async def server(api: Api) -> AsyncIterator[str]:
    """The API on a port; its address."""
    running = Server(api.app, host="127.0.0.1", port=0)
    task = asyncio.create_task(running.run())
    yield running.url
    running.stop()
    await task


@pytest.fixture
def hub(api: Api) -> Hub:
    found: Hub = api.app.state.server.hub
    return found


@asynccontextmanager
async def watching(
    api: Api, server: str, *, role: Role = Role.ADMIN
) -> AsyncIterator[httpx.Response]:
    """A stream of a list, which has begun, or how it was refused."""
    given = {"Authorization": f"Bearer {api.tokens['default', role]}"}
    async with (
        httpx.AsyncClient(base_url=server, timeout=10) as client,
        client.stream("GET", "/api/v1/jobs/stream", headers=given) as answer,
    ):
        parts = answer.aiter_bytes()
        if answer.is_success:
            await anext(parts)
        else:
            await answer.aread()
        yield answer


async def one_frame() -> AsyncGenerator[bytes, None]:
    yield b"frame"


async def test_a_caller_has_so_many_streams(
    api: Api, server: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "MOST_STREAMS", 2)

    async with (
        watching(api, server),
        watching(api, server),
        watching(api, server) as refused,
        watching(api, server, role=Role.VIEWER) as other,
    ):
        assert (refused.status_code, other.status_code) == (429, 200)
        assert refused.json()["code"] == "too_many_streams"
        assert refused.json()["detail"].startswith("2 streams of one caller are open")
        assert refused.headers["retry-after"] == "1"

    await await_until(lambda: not hub._streams)
    async with watching(api, server) as again:
        assert again.status_code == 200


async def test_a_stream_that_never_begins_is_not_counted(hub: Hub):
    hub.stream("token:1", one_frame())

    assert not hub._streams


async def test_of_streams_asked_for_at_once_too_many_are_refused(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "MOST_STREAMS", 1)
    first, second = (hub.stream("token:1", one_frame()).parts for _ in range(2))

    assert await anext(first) == b"frame"
    assert b"too_many_streams" in await anext(second)
    assert [part async for part in first] == [part async for part in second] == []
    assert not hub._streams


async def test_no_frame_of_another_tenant_waits_for_lists(
    api: Api, hub: Hub, connection: psycopg.Connection
):
    """One tenant watches 60 lists, none of which can be read."""
    job = await api.post("/jobs", {"definition": "work"}, role=Role.ADMIN, tenant="acme")
    never = asyncio.Event()
    looks = 0

    async def slow() -> bytes:
        nonlocal looks
        looks += 1
        await never.wait()
        return b""

    async def quick() -> bytes:
        return b"{}"

    with ExitStack() as stack:
        for number in range(60):
            stack.enter_context(hub.look("jobs", (number,), slow, tenant="tenant default"))
        other = stack.enter_context(hub.look("jobs", ("acme",), quick, tenant="tenant acme"))
        topic = stack.enter_context(hub.job(JobId(int(job.json()["id"]))))
        await await_until(lambda: topic.tag and other.tag, 10)
        first = topic.tag
        connection.execute("update mainspring.jobs set priority = 7")
        await await_until(lambda: topic.tag != first, 10)

    assert looks == 2


async def test_a_list_that_cannot_be_read_is_logged_once_and_looked_at_again(hub: Hub):
    looks = 0

    async def wrong() -> bytes:
        nonlocal looks
        looks += 1
        raise psycopg.errors.QueryCanceled("too slow")

    with captured_lines() as lines, hub.look("jobs", (), wrong, tenant="tenant default"):
        await await_until(lambda: looks == 3)

    assert len(named(lines, "streams_paused")) == 1
