"""An API of its own for every test."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from tests.support.api import Api, serving


@pytest.fixture
async def api(database_url: str, connection: psycopg.Connection) -> AsyncIterator[Api]:
    """With two definitions: `work`, and `guarded`, which takes one whole number."""
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('work', 'python');"
        "insert into mainspring.definitions (key, kind, arg_schema) values ('guarded', 'python',"
        """ '{"type": "object", "properties": {"number": {"type": "integer"}},"""
        """ "required": ["number"], "additionalProperties": false}')"""
    )
    async with serving(database_url) as served:
        yield served
