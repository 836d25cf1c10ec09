"""A real PostgreSQL for every test: one embedded server, a database cloned for each test."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring.db import embedded
from mainspring.db.pool import connect
from mainspring.db.templates import drop_forgotten, fresh_database


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    given = os.environ.get("MAINSPRING_TEST_DATABASE_URL")
    if given:
        yield given
        return
    folder = Path(tempfile.gettempdir()) / f"mainspring-tests-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    with embedded.running(folder) as server:
        _do_without_the_disk(server.url)
        drop_forgotten(server.url)
        yield server.url


def _do_without_the_disk(url: str) -> None:
    """What a test writes need not outlive the machine; it still outlives any process."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(f"alter system set {setting} = off".encode())
        connection.execute("select pg_reload_conf()")


@pytest.fixture
def database_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def aconnection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    connection = await connect(database_url, name="test")
    async with connection:
        yield connection
