"""One database for each module here: a clone takes longer than most of these tests."""

from collections.abc import AsyncIterator

import pytest

from mainspring import Mainspring


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    """An app whose only job is `send`."""
    async with Mainspring(database_url) as app:

        @app.job(key="send")
        async def send(**payload: object) -> dict[str, object]:
            return payload

        yield app
