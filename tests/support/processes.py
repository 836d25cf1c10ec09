"""Real worker processes: started, signaled, killed, and never left behind."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals

import psycopg

from tests.support.waiting import wait_until
from tests.support.warm import ROOT, WarmProcess

APP = "tests.support.apps:app"
SETTINGS: Mapping[str, object] = {
    "lease_seconds": 30,
    "poll_seconds": 0.2,
    "drain_seconds": 5,
    "cancel_grace_seconds": 0.2,
    "default_schedules": False,
}

StartWorker = Callable[..., "WorkerProcess"]


class WorkerProcess:
    """`mainspring worker` in a process group of its own, its log in a file."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path
    ) -> None:
        self._log = log
        with log.open("wb") as stream, Path(os.devnull).open("rb") as nothing:
            self._process = WarmProcess(
                arguments,
                environment={**os.environ, **environment},
                folder=folder,
                streams=(nothing, stream, stream),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def signal(self, number: Signals) -> None:
        self._process.send_signal(number)

    def signal_group(self, number: Signals) -> None:
        """What a terminal does on Ctrl-C: every process of the group gets it."""
        os.killpg(self.pid, number)

    def kill(self) -> None:
        self.signal(SIGKILL)
        self._process.wait(10)

    def stop(self) -> int:
        """SIGTERM, then the exit code."""
        self.signal(SIGTERM)
        return self.exit_code()

    def exit_code(self, timeout: float = 20) -> int:
        """Wait for the end."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout:g} s:\n{self.log}") from None

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def started(self, connection: psycopg.Connection) -> int:
        """Wait until it has registered; its worker id."""

        def worker_id() -> int | None:
            assert self.is_alive, self.log
            return worker_of(connection, self.pid)

        found = wait_until(worker_id, 30, "the worker registers")
        assert found is not None
        return found

    def end(self) -> None:
        """Kill the whole group, whatever is left of it."""
        if self.is_alive:
            os.killpg(self.pid, SIGKILL)
            self._process.wait(10)


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def says(process: WorkerProcess, text: str) -> None:
    """Wait until the process has said it."""

    def is_said() -> bool:
        assert process.is_alive, process.log
        return text in process.log

    wait_until(is_said, 60, f"the process says {text!r}")


def worker_of(connection: psycopg.Connection, pid: int) -> int | None:
    """The newest living worker id of a process."""
    row = connection.execute(
        "select max(worker_id) from mainspring.worker_status where pid = %s and is_alive", (pid,)
    ).fetchone()
    return row[0] if row else None


@contextmanager
def worker_processes(url: str, folder: Path) -> Iterator[StartWorker]:
    """A function that starts workers; what still runs at the end is killed."""
    workers: list[WorkerProcess] = []

    def start(
        *arguments: str, app: str = APP, cwd: Path = ROOT, **settings: object
    ) -> WorkerProcess:
        log = folder / f"worker-{len(workers)}.log"
        environment = _environment(url, {**SETTINGS, **settings})
        worker = WorkerProcess(["worker", "--app", app, *arguments], environment, log, cwd)
        workers.append(worker)
        return worker

    try:
        yield start
    finally:
        for worker in workers:
            worker.end()


def _environment(url: str, settings: Mapping[str, object]) -> dict[str, str]:
    variables = {f"MAINSPRING_{name.upper()}": str(value) for name, value in settings.items()}
    return {"PYTHONPATH": str(ROOT / "src"), "MAINSPRING_DATABASE_URL": url, **variables}
