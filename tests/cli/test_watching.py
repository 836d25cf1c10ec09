"""Watching jobs, in a pipe."""

import subprocess
import sys

import pytest

from tests.support.commands import clean_environment
from tests.support.warm import ROOT


@pytest.mark.parametrize("what", [["list"], ["show", "1"]])
def test_a_watch_ends_with_the_program_that_reads_it(command, database_url, what):
    assert command("enqueue", "hello", '{"name": "Ada"}').returncode == 0
    watching = subprocess.Popen(
        [sys.executable, "-m", "mainspring", "jobs", *what, "--watch"],
        cwd=ROOT,
        env=clean_environment(MAINSPRING_DATABASE_URL=database_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline()
        watching.stdout.close()
        code = watching.wait(30)
    finally:
        watching.kill()
    _, said = watching.communicate()

    assert (code, said) == (0, "")
