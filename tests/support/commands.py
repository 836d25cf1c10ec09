"""`mainspring ...` as a person runs it: another process, its output and its exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes import ROOT

Done = subprocess.CompletedProcess[str]


_EACH = """
import contextlib, io, json, sys
from mainspring.cli.main import main
for arguments in json.load(sys.stdin):
    sys.argv[1:] = arguments
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            code = left.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def mainspring(*arguments: str, cwd: Path = ROOT, stdin: str = "", **environment: str) -> Done:
    """Run a command to its end; the environment names no database unless it is given."""
    return run_python(["-m", "mainspring", *arguments], environment, cwd=cwd, stdin=stdin)


def mainspring_each(commands: Sequence[Sequence[str]], **environment: str) -> list[Done]:
    """Run commands one after another in one process, since starting one takes the longest."""
    done = run_python(["-c", _EACH], environment, stdin=json.dumps(commands))
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    pairs = zip(commands, answers, strict=True)
    return [Done(list(arguments), *answer) for arguments, answer in pairs]


def run_python(
    arguments: Sequence[str], environment: Mapping[str, str], *, cwd: Path = ROOT, stdin: str = ""
) -> Done:
    return subprocess.run(
        [sys.executable, *arguments],
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
    ours = {"PYTHONPATH": str(ROOT / "src"), "MAINSPRING_DEFAULT_SCHEDULES": "false"}
    return {**kept, **ours, "COLUMNS": "200", **variables}


def sentence(done: Done) -> str:
    """What a refused command says; fails if it is more than one line, or a traceback."""
    assert done.returncode != 0, done.stdout
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]
