"""`mainspring ...` as a process of its own that does not import everything anew.

Most of a short command's time is Python reading modules, so one process per test run reads them
once and forks for every command. What is forked has its own environment, folder, arguments,
streams and session, and ends like any Python program; only the reading is shared.

    test ──(arguments, environment, folder, streams, pipe)──▶ warm process ──fork──▶ mainspring
    test ◀───────────────── pipe: its pid, then its exit code ──────┘
"""

import asyncio
import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
_MOST = 1 << 20
_STREAMS = 3
_OURS = (str(ROOT), str(ROOT / "src"))


class WarmProcess:
    """What a test needs of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        streams: Sequence[IO[Any]],
    ) -> None:
        self._answers, theirs = os.pipe()
        self._code: int | None = None
        request = {"arguments": arguments, "environment": environment, "folder": str(folder)}
        files = [*(stream.fileno() for stream in streams), theirs]
        _server.ask(json.dumps(request).encode(), files)
        os.close(theirs)
        self._line = os.fdopen(self._answers, "r")
        self.pid = int(self._line.readline())

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("mainspring", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, timeout: float) -> int | None:
        if self._code is None and select.select([self._answers], [], [], timeout)[0]:
            self._code = int(self._line.readline())
            self._line.close()
        return self._code


class _Server:
    """The process to fork from, started by the first that asks and ended with the tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def ask(self, request: bytes, files: Sequence[int]) -> None:
        with self._lock:
            self._socket = self._socket or self._start()
            socket.send_fds(self._socket, [request], files)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        atexit.register(_leave, ours, process)
        return ours


def _leave(ours: socket.socket, process: subprocess.Popen[bytes]) -> None:
    ours.close()
    process.wait(10)


_server = _Server()


# The process that forks


def _serve(requests: socket.socket) -> Callable[[], None] | None:
    """Fork for every request; in the forked process, returns what it is to do."""
    running: dict[int, int] = {}
    woken, waker = os.pipe()
    for end in (woken, waker):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(running)
        if requests.fileno() in ready:
            request, files, _, _ = socket.recv_fds(requests, _MOST, _STREAMS + 1)
            if not request:
                return None
            pid = os.fork()
            if pid == 0:
                return lambda: _become(json.loads(request), files[:_STREAMS])
            for stream in files[:_STREAMS]:
                os.close(stream)
            running[pid] = files[_STREAMS]
            os.write(files[_STREAMS], f"{pid}\n".encode())


def _tell_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        answers = running.pop(pid)
        with suppress(BrokenPipeError):  # the test no longer wants to know
            os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(answers)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Be `python -m mainspring` in another folder."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_STREAMS, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    paths = request["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [request["folder"], *paths, *(path for path in sys.path if path not in _OURS)]
    sys.argv[1:] = request["arguments"]
    runpy.run_module("mainspring", run_name="__main__", alter_sys=True)


def _warm_up() -> None:
    """Make what every command would make anew: the program, and the routes of the API."""
    import httpx

    import mainspring.client.direct_transport  # noqa: F401
    from mainspring.api.app import create_app
    from mainspring.cli.main import command
    from mainspring.db.database import Database
    from mainspring.settings import load

    assert all(command.commands.values())

    api = create_app(Database(load(database_url="postgresql://nowhere")), version="0")

    async def ask() -> None:
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="http://warm") as client:
            for method, path in (("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs")):
                assert (await client.request(method, path)).status_code == HTTPStatus.UNAUTHORIZED

    asyncio.run(ask())


def _main() -> None:
    _warm_up()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        gc.freeze()
        become = _serve(requests)
        if become is not None:
            requests.detach()
            become()


if __name__ == "__main__":
    _main()
