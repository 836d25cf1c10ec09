"""Connections that ask for nothing, or too slowly, or are too many: they end, and others go on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from mainspring.api.server import Server
from tests.support.api import Api, serving

SMALL = {"max_connections": 12, "max_connections_per_address": 10}
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"


@pytest.fixture
async def port(database_url: str) -> AsyncIterator[int]:
    async with serving(database_url, **SMALL) as api, listening(api) as number:
        yield number


@asynccontextmanager
async def listening(api: Api) -> AsyncIterator[int]:
    running = Server(api.app, host="127.0.0.1", port=0)
    task = asyncio.create_task(running.run())
    yield int(running.url.rpartition(":")[2])
    running.stop()
    await task


@asynccontextmanager
async def connected(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def dribble(writer: asyncio.StreamWriter, text: Callable[[], bytes]) -> None:
    """A little at a time, until nobody listens."""
    with suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(text())
            await writer.drain()
            await asyncio.sleep(0.01)


async def outcome(port: int, start: bytes, rest: bytes) -> bytes:
    """What the server says to who sends the start at once and the rest slowly."""
    async with connected(port) as (reader, writer), asyncio.timeout(10):
        writer.write(start)
        task = asyncio.create_task(dribble(writer, lambda: rest))
        said = b""
        # Piece by piece: a reset takes what has come with it.
        with suppress(ConnectionError):
            while piece := await reader.read(4096):
                said += piece
        task.cancel()
        return said


@pytest.mark.parametrize("start", [b"", b"GET /health HTTP/1.1\r\n"])
async def test_headers_that_never_end_end_the_connection(
    port: int, monkeypatch: pytest.MonkeyPatch, start: bytes
):
    monkeypatch.setattr("mainspring.api.connections._HEADER_SECONDS", 0.2)

    assert await outcome(port, start, b"X-A: b\r\n" if start else b"") == b""


async def test_headers_of_a_second_request_that_never_end_end_the_connection(
    port: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mainspring.api.connections._HEADER_SECONDS", 0.2)

    said = await outcome(port, HEALTH + b"GET /health HTTP/1.1\r\n", b"X-A: b\r\n")

    assert said.count(b"HTTP/1.1 200 OK") == 1


async def test_a_body_that_never_comes_is_refused(port: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mainspring.api.middleware._BODY_SECONDS", 0.2)

    said = await outcome(port, POST + b"Content-Length: 100000\r\n\r\nx", b"")

    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"request_timeout" in said


async def test_a_body_that_comes_too_slowly_ends_the_connection(
    port: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mainspring.api.middleware._BODY_SECONDS", 0.2)

    # Who goes on sending may not get to read why.
    await outcome(port, POST + b"Content-Length: 100000\r\n\r\n", b"x")


async def test_too_many_connections_of_one_address_are_refused(port: int):
    async with AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(connected(port))
        refused = await outcome(port, b"", b"")

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"too many connections from 127.0.0.1" in refused


async def test_too_many_connections_in_all_are_refused(database_url: str):
    flags = {**SMALL, "trusted_proxies": "127.0.0.1"}
    async with (
        serving(database_url, **flags) as api,
        listening(api) as port,
        AsyncExitStack() as stack,
    ):
        for _ in range(12):
            await stack.enter_async_context(connected(port))
        refused = await outcome(port, b"", b"")

    assert b"the server has too many connections" in refused


async def test_connections_that_have_ended_count_no_more(port: int):
    for _ in range(30):
        async with connected(port) as (reader, writer):
            writer.write(HEALTH)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            await writer.wait_closed()
