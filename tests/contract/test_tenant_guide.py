"""The guide to tenants can be followed from top to bottom, and the worker does what it says."""

import re
from pathlib import Path

import psycopg

from mainspring import Mainspring
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, run
from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess
from tests.support.waiting import wait_until

GUIDE = (ROOT / "docs" / "guides" / "tenants.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def follow(database_url: str, connection: psycopg.Connection, folder: Path) -> None:
    for language, text in BLOCK.findall(GUIDE):
        if language == "sql":
            connection.execute(text.encode())
        elif language == "sh":
            for words in block_commands(text):
                run(words, folder, database_url)
        else:
            with Mainspring(database_url) as app:
                exec(compile(text, "tenants.md", "exec"), {"app": app})


def test_the_guide_to_tenants_can_be_followed(database_url, connection, tmp_path):
    follow(database_url, connection, tmp_path)
    # Nothing is claimed ahead: on a busy machine that would be handed back, and found a bit later.
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url, MAINSPRING_PREFETCH="0")
    arguments = ["worker", "--concurrency", "1"]
    worker = WorkerProcess(arguments, environment, tmp_path / "worker.log", tmp_path)
    try:
        count = "select count(*) from shop.runs"
        wait_until(lambda: connection.execute(count).fetchone() == (230,), 60, "all jobs ran")
    finally:
        worker.end()

    (row,) = connection.execute(
        "select count(*) filter (where tenant = 'bell') from (select * from shop.runs"
        " order by number limit 45) as first"
    ).fetchall()
    assert row == (30,)
