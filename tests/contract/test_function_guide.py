"""The guide to SQL functions can be followed from top to bottom beside a worker without an app."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring import Mainspring
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, run
from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess

GUIDE = (ROOT / "docs" / "guides" / "functions.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ROLE = "civic_jobs"


@pytest.fixture
def role(connection: psycopg.Connection) -> Iterator[None]:
    """The guide's role belongs to the server, so it goes with the test."""
    connection.execute(f"drop role if exists {ROLE}".encode())
    yield
    connection.execute(f"drop owned by {ROLE}; drop role {ROLE}".encode())


@pytest.fixture
def worker(database_url: str, connection: psycopg.Connection, tmp_path: Path) -> Iterator[None]:
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    process = WorkerProcess(["worker"], environment, tmp_path / "worker.log", tmp_path)
    try:
        process.started(connection)
        yield
    finally:
        process.end()


@pytest.mark.usefixtures("role", "worker")
def test_the_guide_to_functions_can_be_followed(database_url, connection, tmp_path):
    printed = []
    for language, text in BLOCK.findall(GUIDE):
        if language == "sql":
            connection.execute(text.encode())
        elif language == "sh":
            printed += [run(words, tmp_path, database_url).stdout for words in block_commands(text)]
        else:
            with Mainspring(database_url) as app:
                exec(compile(text, "functions.md", "exec"), {"app": app})

    assert any('"1 sessions removed"' in text for text in printed)
    assert any('"0 sessions removed"' in text for text in printed)
    assert connection.execute("select count(*) from civic.sessions").fetchone() == (1,)
    (roles,) = connection.execute(
        "select array_agg(spec ->> 'role' order by version) from mainspring.definition_versions"
        " where key = 'remove_sessions'"
    ).fetchall()
    assert roles[0][-1] == ROLE
