"""A server in a thread, and clients of it."""

import asyncio
import threading
from collections.abc import Iterator

import psycopg
import pytest

from mainspring.api.server import Server
from mainspring.client import Client
from mainspring.domain.access.roles import Role
from tests.support.api import serving


@pytest.fixture
def server(database_url: str, connection: psycopg.Connection) -> Iterator[tuple[str, str]]:
    """Its address, and the token of an operator."""
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    ready, ended = threading.Event(), threading.Event()
    found: list[tuple[str, str]] = []

    async def serve() -> None:
        async with serving(database_url) as api:
            running = Server(api.app, host="127.0.0.1", port=0)
            task = asyncio.create_task(running.run())
            found.append((running.url, api.tokens["*", Role.OPERATOR]))
            ready.set()
            await asyncio.to_thread(ended.wait)
            running.stop()
            await task

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    yield found[0]
    ended.set()
    thread.join()


@pytest.fixture
def client(server: tuple[str, str]) -> Iterator[Client]:
    with Client(*server) as client:
        yield client
