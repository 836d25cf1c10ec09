"""`mainspring ...` as a person runs it: another process, its output and its exit code."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT

Done = subprocess.CompletedProcess[str]


def mainspring(*arguments: str, cwd: Path = ROOT, stdin: str = "", **environment: str) -> Done:
    """Run a command to its end; the environment names no database unless it is given."""
    return subprocess.run(
        [sys.executable, "-m", "mainspring", *arguments],
        cwd=cwd,
        env=clean_environment(**environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def clean_environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", **variables}


def sentence(done: Done) -> str:
    """What a refused command says; fails if it is more than one line, or a traceback."""
    assert done.returncode != 0, done.stdout
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]
