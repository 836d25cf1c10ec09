"""One database a module; every test works in a transaction of its own that is rolled back."""

from collections.abc import Iterator

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support.databases import undone
from tests.support.queue_driver import QueueDriver
from tests.support.rows import insert_definition, insert_tenant


@pytest.fixture(scope="module")
def module_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
def driver(module_url: str) -> Iterator[QueueDriver]:
    driver = QueueDriver(module_url)
    yield driver
    driver.close()


@pytest.fixture
def tx(module_url: str) -> Iterator[psycopg.Connection]:
    """A transaction with the definitions `work` and `other` and the tenant `acme`."""
    with undone(module_url) as connection:
        insert_definition(connection, "work", queue="tools", priority=70, max_attempts=4)
        insert_definition(connection, "other")
        insert_tenant(connection, "acme")
        yield connection
