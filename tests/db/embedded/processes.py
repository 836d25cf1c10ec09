"""Other processes that use a server, of this user and of an ordinary one."""

import os
import pwd
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

import mainspring

AS_ROOT = os.geteuid() == 0
PATH = os.pathsep.join(
    str(Path(package.__file__ or "").parents[1]) for package in (mainspring, psycopg)
)
# The tests may run with Ctrl-C turned off, as in the background of a script.
HOLD = """
import signal, sys
from pathlib import Path
from mainspring.db import embedded

signal.signal(signal.SIGINT, signal.default_int_handler)
with embedded.running(Path(sys.argv[1])) as server:
    print(server.pid, server.url, flush=True)
    sys.stdin.read()
"""
ACQUIRE = """
import os, signal, sys
from pathlib import Path
from mainspring.db import embedded

server = embedded.acquire(Path(sys.argv[1]))
print(server.url, flush=True)
"""
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root runs PostgreSQL as someone else")


@dataclass(frozen=True)
class Holder:
    """Another process that uses a server until told to leave."""

    process: subprocess.Popen[str]

    def server(self) -> tuple[int, str]:
        pid, url = self.line().split()
        return int(pid), url

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate(timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def run_python(script: str, data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-c", script, data_dir),
        env=os.environ | {"PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_as_ordinary_user(script: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    python = sys.executable if not AS_ROOT else _python_for_nobody()
    return _run_unprivileged(python, script, data_dir)


def _python_for_nobody() -> str:
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            done = _run_unprivileged(python, "import mainspring.db.embedded", Path("/"))
            if done.returncode == 0:
                return python
    pytest.skip("no Python here can import the package as the user nobody")


def _run_unprivileged(python: str, script: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    nobody = pwd.getpwnam("nobody")
    return subprocess.run(
        (python, "-c", script, data_dir),
        check=False,
        cwd="/",
        env={"PYTHONPATH": PATH, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        user=nobody.pw_uid if AS_ROOT else None,
        group=nobody.pw_gid if AS_ROOT else None,
        extra_groups=[] if AS_ROOT else None,
    )


def answers(url: str) -> bool:
    return pq.PGconn.ping(url.encode()) == pq.Ping.OK
