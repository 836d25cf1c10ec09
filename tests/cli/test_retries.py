"""Retrying what runs at most once and was lost."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import clean_environment, mainspring, mainspring_each, sentence
from tests.support.processes import says

APP = """
import asyncio
from mainspring import Mainspring

app = Mainspring()

@app.job(delivery="at_most_once")
async def pay_out() -> None:
    print("it has begun")
    await asyncio.Event().wait()
"""
WHY = "runs at most once and was lost: a retry may repeat what the lost attempt has done"


@pytest.fixture
def lost(start, tmp_path: Path, mainspring_database_url: str) -> dict[str, str]:
    """The environment of commands on a database whose job 1 was lost, in the flow 1."""
    environment = {"MAINSPRING_DATABASE_URL": mainspring_database_url}
    (tmp_path / "payments.py").write_text(APP)
    arguments = ("worker", "--app", "payments:app", "--drain-seconds", "0")
    worker = start(*arguments, cwd=tmp_path, **environment)
    says(worker, "worker_started")
    steps = '[{"step": "a", "definition": "pay_out"}]'
    (done,) = mainspring_each([["flows", "start", "payments", steps]], **environment)
    assert done.returncode == 0
    says(worker, "it has begun")
    worker.stop()
    return environment


@pytest.mark.parametrize("words", [["jobs"], ["admin", "jobs"]])
def test_a_lost_job_is_retried_without_a_terminal_only_with_yes(lost, words):
    refused = mainspring(*words, "retry", "1", **lost)
    done = mainspring(*words, "retry", "1", "--yes", **lost)

    assert refused.returncode == 2
    assert sentence(refused) == f"error: job 1 {WHY}; pass --yes to retry anyway"
    assert (done.returncode, done.stdout) == (0, "job 1 is queued\n")


def test_a_flow_with_a_lost_job_is_retried_without_a_terminal_only_with_yes(lost):
    refused = mainspring("flows", "retry", "1", **lost)
    done = mainspring("flows", "retry", "1", "--yes", **lost)

    assert sentence(refused) == f"error: job 1 {WHY}; pass --yes to retry anyway"
    assert (done.returncode, done.stdout) == (0, "Flow 1: 1 job requeued.\n")


@pytest.mark.parametrize(("answer", "code", "said"), [("n", 1, ""), ("y", 0, "job 1 is queued\n")])
def test_on_a_terminal_it_is_asked_for(lost, answer, code, said):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "rb", buffering=0) as terminal:
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(
            [sys.executable, "-m", "mainspring", "jobs", "retry", "1"],
            env=clean_environment(**lost),
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    os.close(ours)

    assert (done.returncode, done.stdout.lstrip()) == (code, said)
    assert f"Job 1 {WHY}. Retry anyway? [y/N]" in done.stderr


def test_a_job_that_was_canceled_before_it_began_is_retried_at_once(command):
    command("enqueue", "hello", '{"name": "Ada"}', "--delivery", "at_most_once")
    command("jobs", "cancel", "1")

    assert command("jobs", "retry", "1").stdout == "job 1 is queued\n"
