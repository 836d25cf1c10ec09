"""One database for each module here: a clone takes longer than most of these tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from mainspring import Mainspring
from mainspring.db.templates import fresh_database
from tests.support.emptying import empty


@pytest.fixture(scope="module")
def shared_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def database_url(shared_url: str) -> str:
    empty(shared_url)
    return shared_url


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    """An app whose only job is `send`."""
    async with Mainspring(database_url) as app:

        @app.job(key="send")
        async def send(**payload: object) -> dict[str, object]:
            return payload

        yield app
