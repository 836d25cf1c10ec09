"""A database that the tests of a module share, each in a transaction that is undone."""

from collections.abc import Iterator

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support.databases import undone


@pytest.fixture(scope="module")
def module_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def tx(module_url: str) -> Iterator[psycopg.Connection]:
    with undone(module_url) as connection:
        connection.execute(
            "insert into mainspring.definitions (key, kind, concurrency)"
            " values ('work', 'python', null), ('limited', 'python', 1)"
        )
        yield connection
