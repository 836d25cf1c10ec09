"""The guide to events can be followed from top to bottom beside `mainspring up`."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

from mainspring.testing import bind
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, runnable
from tests.support import events
from tests.support.commands import clean_environment, mainspring_each
from tests.support.processes import WorkerProcess
from tests.support.waiting import await_until

GUIDE = (ROOT / "docs" / "guides" / "events.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
RESULTS = "select result #>> '{}' from mainspring.job_status order by job_id"
BUSY = """
select from mainspring.events where handled_at is null
union all
select from mainspring.jobs
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The first Python of the page, saved and imported as jobs.py."""
    (tmp_path / "jobs.py").write_text(BLOCKS[0][1])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("jobs")
    del sys.modules["jobs"]


@pytest.fixture
def up(
    jobs: ModuleType, database_url: str, connection: psycopg.Connection, tmp_path: Path
) -> Iterator[None]:
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    words = ["up", "--app", "jobs:app"]
    process = WorkerProcess(words, environment, tmp_path / "up.log", tmp_path)
    try:
        process.started(connection)
        yield
    finally:
        process.end()


@pytest.mark.usefixtures("up")
async def test_the_guide_to_events_can_be_followed(jobs, database_url, connection):
    printed: list[str] = []
    names: dict[str, Any] = vars(jobs)
    with bind(jobs.app, database_url):
        for language, text in BLOCKS[1:-1]:
            if language == "sh":
                printed.append(printed_by(text, database_url))
            elif language == "sql":
                connection.execute(text.encode())
            elif language == "text":
                assert printed[-1] == text
            elif (waiting := eval(runnable(text, "events.md"), names)) is not None:
                await waiting
            await await_until(lambda: is_quiet(connection), what="all that was emitted is done")

    results = [result for (result,) in connection.execute(RESULTS).fetchall()]
    assert results[:3] == ["/photos: 3 files", "/drafts: 1 files", "/music: 0 files"]
    assert "trigger resync: enqueued, job 1" in "".join(printed)


def printed_by(block: str, url: str) -> str:
    done = mainspring_each(block_commands(block), MAINSPRING_DATABASE_URL=url)
    assert [each.stderr for each in done if each.returncode] == []
    return "".join(each.stdout for each in done)


def is_quiet(connection: psycopg.Connection) -> bool:
    """A reader is slower than a dispatcher and a worker."""
    return connection.execute(BUSY).fetchone() is None


async def test_the_test_in_the_guide_passes(jobs, database_url, connection):
    names: dict[str, Any] = {}
    exec(BLOCKS[-1][1], names)
    with bind(jobs.app, database_url):
        jobs.app.register_definitions()
        payload = {"folder": "{{event.folder}}"}
        events.insert_trigger(connection, definition="sync-dropbox", payload=payload)

        await names["test_a_changed_folder_is_synced"](jobs.app)
