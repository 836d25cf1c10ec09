"""`mainspring ...` as a person runs it: another process, its output and its exit code."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from select import select
from signal import SIGKILL
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from tests.support.warm import ROOT, WarmProcess

_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Done = subprocess.CompletedProcess[str]

# Nobody's own profiles are read or written.
_PROFILES = TemporaryDirectory(prefix="mainspring-profiles-")


def mainspring(*arguments: str, cwd: Path = ROOT, stdin: str = "", **environment: str) -> Done:
    """Run a command to its end; the environment names no database unless it is given."""
    with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        given.write(stdin)
        given.seek(0)
        process = WarmProcess(
            arguments,
            environment=clean_environment(**environment),
            folder=cwd,
            streams=(given, out, err),
        )
        try:
            code = process.wait(60)
        finally:
            process.send_signal(SIGKILL)
        out.seek(0)
        err.seek(0)
        return Done(list(arguments), code, out.read(), err.read())


def mainspring_each(commands: Sequence[Sequence[str]], **environment: str) -> list[Done]:
    """Run commands one after another."""
    run = partial(mainspring, cwd=ROOT, stdin="", **environment)
    return [run(*arguments) for arguments in commands]


def on_terminal(*arguments: str, columns: int, environment: Mapping[str, str]) -> Done:
    """Run a command as a person who sees its output on a terminal of this width; styles are left
    out of what it shows."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as terminal, TemporaryFile("w+") as err:
        # Not a warm process, which has looked at the width of its terminal before.
        process = subprocess.Popen(
            [sys.executable, "-m", "mainspring", *arguments],
            cwd=ROOT,
            env=clean_environment(**{"COLUMNS": str(columns), "TERM": "xterm", **environment}),
            stdin=terminal,
            stdout=terminal,
            stderr=err,
        )
        try:
            shown = b"".join(_read(ours, process))
        finally:
            process.kill()
            os.close(ours)
        err.seek(0)
        text = _STYLE.sub("", shown.decode()).replace("\r\n", "\n")
        return Done(list(arguments), process.wait(), text, err.read())


def _read(terminal: int, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What is written until the process has ended; a terminal holds little until it is read."""
    while True:
        has_ended = process.poll() is not None
        while select([terminal], [], [], 0.02)[0]:
            yield os.read(terminal, 65536)
        if has_ended:
            return


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
    ours = {
        "PYTHONPATH": str(ROOT / "src"),
        "MAINSPRING_DEFAULT_SCHEDULES": "false",
        "XDG_CONFIG_HOME": _PROFILES.name,
        "COLUMNS": "200",
    }
    return {**kept, **ours, **variables}


def sentence(done: Done) -> str:
    """What a refused command says; fails if it is more than one line, or a traceback."""
    assert done.returncode != 0, done.stdout
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def table(done: Done) -> list[dict[str, str]]:
    """What a list said, by the names of its columns."""
    header, *lines = done.stdout.splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def facts(done: Done) -> Any:
    """What a command with --json said."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
