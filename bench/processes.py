"""The processes of a system: workers that run until killed, and clients that print a result."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from bench.catalogue import OURS, System
from bench.handlers import HANDLER_VARIABLE, STAMPS_VARIABLE
from bench.systems.driver import QUEUE

_ROOT: Final = Path(__file__).resolve().parent.parent
_CLIENT_SECONDS: Final = 300
_START_SECONDS: Final = 30


Process = subprocess.Popen[bytes]


class ProcessFailed(Exception):
    """A worker or a client ended in a way it should not; the message ends with what it printed."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Running worker processes of one system on one database."""

    processes: list[Process]
    log: IO[bytes]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def ensure_alive(self) -> None:
        for process in self.processes:
            if process.poll() is not None:
                raise ProcessFailed(f"a worker exited with {process.returncode}: {self.output()}")

    def output(self) -> str:
        self.log.seek(0)
        return _ending(self.log.read())


@contextmanager
def working(
    system: System,
    dsn: str,
    *,
    count: int = 1,
    concurrency: int | None = None,
    handler: str = "noop",
    stamps: Path | None = None,
) -> Iterator[Workers]:
    """Workers that are killed when the block ends."""
    command = _worker_command(system, dsn, concurrency or system.concurrency)
    with _running(command, _environment(dsn, handler, stamps), count) as workers:
        yield workers


@contextmanager
def scheduling(
    system: System, dsn: str, command: str, *, count: int = 0, stamps: Path | None = None
) -> Iterator[Workers]:
    """One scheduler, with the schedules the command says, that is killed when the block ends."""
    line = _scheduler_command(system, dsn, command, count=count)
    with _running(line, _environment(dsn, stamps=stamps)) as workers:
        yield workers


@contextmanager
def serving(system: System, dsn: str) -> Iterator[tuple[int, Workers]]:
    """A server on a port; it answers when the block begins."""
    port = _free_port()
    if system.name == OURS:
        line = [sys.executable, "-m", "mainspring", "server", "--port", str(port)]
    else:
        line = [sys.executable, "-m", "bench.systems.bare", "--dsn", dsn, "--port", str(port)]
    environment = {**_environment(dsn), "MAINSPRING_REQUESTS_PER_MINUTE": "0"}
    with _running(line, environment) as workers:
        _wait_for_port(port, workers)
        yield port, workers


def token(dsn: str) -> str:
    """A new token of an operator."""
    line = [sys.executable, "-m", "mainspring", "tokens", "create", "bench", "--role", "operator"]
    done = subprocess.run(line, env=_environment(dsn), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _wait_for_port(port: int, workers: Workers) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        workers.ensure_alive()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise ProcessFailed(f"nobody listens on port {port}: {workers.output()}")


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], count: int = 1
) -> Iterator[Workers]:
    with tempfile.TemporaryFile() as log:
        processes = [_start(command, environment, log) for _ in range(count)]
        try:
            yield Workers(processes, log)
        finally:
            for process in processes:
                _kill(process)


def call(system: System, command: str, dsn: str, **options: object) -> Any:
    """Run a client command to its end and give what it printed."""
    with started(system, command, dsn, **options) as process:
        return result(process)


@contextmanager
def started(system: System, command: str, dsn: str, **options: object) -> Iterator[Process]:
    """A client command under way; killed if it still runs when the block ends."""
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    line = [sys.executable, "-m", "bench.systems", system.module, command, "--dsn", dsn, *arguments]
    process = subprocess.Popen(
        line,
        cwd=_ROOT,
        env=_environment(dsn),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _kill(process)


def result(process: Process) -> Any:
    try:
        output, errors = process.communicate(timeout=_CLIENT_SECONDS)
    except subprocess.TimeoutExpired:
        raise ProcessFailed(f"a client took more than {_CLIENT_SECONDS} s") from None
    if process.returncode != 0:
        raise ProcessFailed(f"a client failed: {_ending(errors)}")
    return json.loads(output) if output else None


def _worker_command(system: System, dsn: str, concurrency: int) -> list[str]:
    if system.name == OURS:
        program = [sys.executable, "-m", "mainspring", "worker"]
        application = ["--app", "bench.systems.mainspring_:app", "--queues", QUEUE]
        return [*program, *application, "--concurrency", str(concurrency)]
    program = [sys.executable, "-m", "bench.systems", system.module, "worker"]
    return [*program, "--dsn", dsn, "--concurrency", str(concurrency)]


def _scheduler_command(system: System, dsn: str, command: str, *, count: int) -> list[str]:
    if system.name == OURS:
        application = f"bench.systems.mainspring_:{command}"
        return [sys.executable, "-m", "mainspring", "scheduler", "--app", application]
    program = [sys.executable, "-m", "bench.systems", system.module, command]
    return [*program, "--dsn", dsn, "--count", str(count)]


def _environment(dsn: str, handler: str = "noop", stamps: Path | None = None) -> Mapping[str, str]:
    chosen = {
        HANDLER_VARIABLE: handler,
        "MAINSPRING_DATABASE_URL": dsn,
        "MAINSPRING_COMMAND_DIRECTORIES": "/bin:/usr/bin",
        # Nothing else is to fire while something is measured.
        "MAINSPRING_DEFAULT_SCHEDULES": "false",
    }
    if stamps:
        chosen[STAMPS_VARIABLE] = str(stamps)
    return os.environ | chosen


def _start(command: list[str], environment: Mapping[str, str], log: IO[bytes]) -> Process:
    return subprocess.Popen(
        command,
        cwd=_ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _ending(output: bytes) -> str:
    """The last lines, where the error is."""
    return " | ".join(output.decode(errors="replace").strip().splitlines()[-3:])


def _kill(process: Process) -> None:
    # The whole group, as a worker may have children; by force, as its database is dropped next
    # and an orderly stop is not what is measured.
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
