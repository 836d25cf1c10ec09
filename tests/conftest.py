"""A real PostgreSQL for every test: one embedded server, a database cloned for each test."""

import gc
from collections.abc import AsyncIterator, Generator, Iterator

import psycopg
import pytest

from mainspring import telemetry
from mainspring.db.connect import connect

telemetry.IS_STRICT = True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Eleven thousand tests stay until the end, so garbage collection need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def server_url(mainspring_server_url: str) -> str:
    return mainspring_server_url


@pytest.fixture
def database_url(mainspring_database_url: str) -> str:
    return mainspring_database_url


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    # Whoever holds a lock may be in the event loop that this connection would stop for ever.
    options = "-c lock_timeout=30s"
    with psycopg.connect(database_url, autocommit=True, options=options) as connection:
        yield connection


@pytest.fixture
async def aconnection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    connection = await connect(database_url, name="test")
    async with connection:
        yield connection
