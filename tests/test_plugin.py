"""The pytest plugin, in a pytest of its own."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.support.warm import ROOT

SAMPLE = """
from mainspring.testing import adrain, assert_enqueued

async def test_one(mainspring_app):
    @mainspring_app.job
    async def greet(name: str) -> None: ...

    await greet.aenqueue(name="Ada")
    assert_enqueued(mainspring_app, greet, name="Ada")
    assert (await adrain(mainspring_app)).succeeded == 1

async def test_the_next_starts_afresh(mainspring_app):
    assert await mainspring_app.jobs.alist() == []
"""


def test_the_fixtures_give_each_test_a_database_of_its_own(tmp_path: Path):
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    installed = "mainspring.testing" in {e.value for e in entry_points(group="pytest11")}
    load = [] if installed else ["-p", "mainspring.testing"]

    options = "-q -p no:cacheprovider -W error -o asyncio_mode=auto"
    loops = "asyncio_default_fixture_loop_scope=function"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), "-o", loops, *load, "--rootdir=."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_loading_the_plugin_imports_no_driver():
    script = (
        "import sys, mainspring.testing; print('psycopg' in sys.modules or 'orjson' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False\n"
