"""Workers for runtime tests: processes of their own, and apps for a worker in the test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.settings import load
from tests.support import apps
from tests.support.processes import StartWorker, worker_processes


@pytest.fixture
def shared_app(
    database_url: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mainspring]:
    """The app that worker processes run, for enqueueing to them."""
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", database_url)
    connection.execute(apps.TABLES)
    apps.app.use(load())
    apps.app.register_definitions()
    yield apps.app
    apps.app.close()


@pytest.fixture
def start_worker(
    shared_app: Mainspring, database_url: str, tmp_path: Path
) -> Iterator[StartWorker]:
    with worker_processes(database_url, tmp_path) as start:
        yield start


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    """An empty app for a worker in the test's own event loop."""
    async with Mainspring(database_url) as app:
        yield app
