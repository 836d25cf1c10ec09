"""The guide to secrets can be followed from top to bottom, and what it says is hidden is hidden."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

from mainspring.services.secrets import generate_key
from tests.contract.test_docs import ROOT, python_blocks
from tests.support.commands import clean_environment
from tests.support.processes import WorkerProcess
from tests.support.waiting import wait_until

GUIDE = (ROOT / "docs" / "guides" / "secrets.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
PASSWORD = "correct horse"
RETRIED = "until [ $(grep -c 'logging in as' worker.log) = 3 ]; do sleep 0.1; done"


def test_the_guide_to_secrets_can_be_followed(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
):
    key = generate_key()
    (tmp_path / "jobs.py").write_text(next(python_blocks(GUIDE)))
    environment = clean_environment(
        MAINSPRING_DATABASE_URL=database_url, MAINSPRING_ENCRYPTION_KEYS=key
    )
    environment["PATH"] = f"{programs(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    worker = WorkerProcess(
        ["worker", "--app", "jobs:app"], environment, tmp_path / "worker.log", tmp_path
    )
    try:
        worker.started(connection)
        done = follow(environment, tmp_path)
        wait_until(lambda: worker.log.count("logging in as") == 3, what="the retry ran")
    finally:
        worker.end()

    assert done.returncode == 0, done.stdout + done.stderr
    for text in (done.stdout, done.stderr, worker.log):
        assert PASSWORD not in text
    assert '"token": "4104d36f"' in done.stdout
    assert "'[redacted]' is wrong" in done.stdout
    assert "logging in as ada with [redacted]" in worker.log
    assert re.search(r"re-encrypted: \d jobs, [12] finished jobs, 0 schedules", done.stdout)


def programs(folder: Path) -> Path:
    """`mainspring` as it is installed; nothing is installed from within a test."""
    made = folder / "bin"
    made.mkdir()
    for name, line in (
        ("mainspring", f'exec {sys.executable} -m mainspring "$@"'),
        ("pip", "exit 0"),
    ):
        (made / name).write_text(f"#!/bin/sh\n{line}\n")
        (made / name).chmod(0o755)
    return made


def follow(environment: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    # The worker has had its key from the start; the guide comes to it later.
    script = "\n".join(["set -eu", *BLOCK.findall(GUIDE)]).replace(
        'KEYS="$(mainspring admin secrets generate-key)"', 'KEYS="$MAINSPRING_ENCRYPTION_KEYS"'
    )
    # It does not have the next one, which a job that has not run by then would be under.
    rotate = "mainspring admin secrets rotate"
    script = script.replace(rotate, f"{RETRIED}\n{rotate}")
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
