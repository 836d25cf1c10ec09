"""What a worker has not done by the time its first job runs, since it would delay that job."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import psycopg
import pytest

# Other roles need them, or a job that uses them.
NOT_NEEDED = {
    *("cronsim", "fastapi", "holidays", "httpx", "uvicorn", "yaml"),
    *("mainspring.app.events", "mainspring.app.flows", "mainspring.app.schedules"),
    *("mainspring.domain.schedules.model", "mainspring.domain.schedules.timing"),
    *("mainspring.runtime.scheduler.scheduler", "mainspring.services.schedules"),
    *("mainspring.cli.output", "mainspring.client", "mainspring.api"),
}
APP = """
    import gc, json, os, sys
    from pathlib import Path
    from mainspring import Mainspring

    searched, left_alone = len(gc.get_objects()), gc.get_freeze_count()
    is_collecting = gc.isenabled()
    app = Mainspring()

    @app.job
    async def report() -> None:
        facts = {
            "modules": sorted(sys.modules),
            "searched": searched,
            "left_alone": left_alone,
            "is_collecting": is_collecting and gc.isenabled(),
        }
        Path("facts.json").write_text(json.dumps(facts))
        os._exit(0)
"""


@pytest.fixture
def facts(tmp_path: Path, database_url: str, connection: psycopg.Connection) -> dict[str, Any]:
    """Of a process of its own: those of other tests are forked from one that has imported all."""
    (tmp_path / "jobs.py").write_text(dedent(APP))
    connection.execute("insert into mainspring.definitions (key, kind) values ('report', 'python')")
    connection.execute("select mainspring.enqueue('report')")
    command = ["-m", "mainspring", "worker", "--app", "jobs:app", "--database-url", database_url]
    environment = {**os.environ, "MAINSPRING_CONFIG": os.devnull}
    subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads((tmp_path / "facts.json").read_text())
    return found


def test_a_worker_starts_without_looking_for_garbage_in_what_it_imports(facts: dict[str, Any]):
    assert facts["left_alone"] > 10 * facts["searched"]
    assert facts["is_collecting"]


def test_a_worker_starts_without_what_only_others_need(facts: dict[str, Any]):
    assert sorted(NOT_NEEDED & set(facts["modules"])) == []
