"""What is broken: a PostgreSQL of its own, workers, schedulers and a server, as real processes."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

import psycopg

from chaos.networks import Network
from mainspring.db import embedded, migrate

LEASE_SECONDS: Final = 3
_ROOT: Final = Path(__file__).resolve().parent.parent
_SETTINGS: Final = {
    "MAINSPRING_LEASE_SECONDS": str(LEASE_SECONDS),
    "MAINSPRING_POLL_SECONDS": "0.5",
    "MAINSPRING_DRAIN_SECONDS": "3",
    "MAINSPRING_DEFAULT_SCHEDULES": "false",
    "PYTHONUNBUFFERED": "1",
}
_TABLES: Final = """
create schema chaos;
create table chaos.effects (job_id bigint not null, n bigint not null);
"""
_TRIGGER: Final = """
insert into mainspring.triggers (name, event, definition, payload)
values ('chaos', 'chaos.happened', 'evented', '{"n": "{{event.n}}"}')
"""


class Process:
    """One role that is started again whenever it ends."""

    def __init__(self, name: str, arguments: list[str], url: str, folder: Path) -> None:
        self.name = name
        self._arguments, self._url, self._folder = arguments, url, folder
        self._starts = 0
        self._process = self._start()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._guard = threading.Thread(target=self._keep, daemon=True)
        self._guard.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def starts(self) -> int:
        return self._starts

    def signal(self, number: int) -> None:
        if self._process.poll() is None:
            os.killpg(self.pid, number)

    def end(self) -> None:
        self._closing.set()
        with self._lock:
            self.signal(SIGKILL)
            self._process.wait(10)

    def log(self) -> str:
        return "\n".join(
            path.read_text(errors="replace") for path in sorted(self._folder.glob(f"{self.name}.*"))
        )

    def _keep(self) -> None:
        """As systemd or Kubernetes would."""
        while not self._closing.wait(0.1):
            with self._lock:
                if self._process.poll() is not None and not self._closing.is_set():
                    self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")
        }
        environment |= {
            **_SETTINGS,
            "MAINSPRING_DATABASE_URL": self._url,
            "PYTHONPATH": str(_ROOT),
        }
        with (self._folder / f"{self.name}.{self._starts:04d}.log").open("wb") as log:
            return subprocess.Popen(
                self._arguments, env=environment, stdout=log, stderr=log, start_new_session=True
            )


class System:
    """Everything that runs."""

    def __init__(self, folder: Path, server: embedded.EmbeddedServer, network: Network) -> None:
        self.folder, self.network = folder, network
        self.url, self._superuser_url = server.url, server.superuser_url
        self.workers = [
            self._role("worker-0", "worker", "--concurrency", "30"),
            self._role("worker-1", "worker", "--concurrency", "30"),
            Process(
                "worker-far",
                [*network.prefix, *_command("worker", "--concurrency", "30")],
                network.url,
                folder,
            ),
        ]
        self.schedulers = [self._role(f"scheduler-{each}", "scheduler") for each in range(2)]
        port = _free_port()
        self.api_url = f"http://127.0.0.1:{port}"
        self.server = self._role("server", "server", "--port", str(port))
        self.token = _token(self.url)
        self.processes = [*self.workers, *self.schedulers, self.server]

    def _role(self, name: str, *arguments: str) -> Process:
        return Process(name, _command(*arguments), self.url, self.folder)

    def end(self) -> None:
        for process in self.processes:
            process.signal(SIGTERM)
        for process in self.processes:
            process.end()

    @property
    def database_pid(self) -> int:
        """Of the postmaster, which another process may have brought back."""
        lines = (self.folder / "database" / "postgres" / "postmaster.pid").read_text().splitlines()
        return int(lines[0])

    def connect(self) -> psycopg.Connection:
        """As the superuser, who may break everything."""
        return psycopg.connect(self._superuser_url, autocommit=True, connect_timeout=3)


def _token(url: str) -> str:
    """Of an operator, made as a person would."""
    create = ["tokens", "create", "chaos", "--role", "operator", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "mainspring", *create],
        env={**os.environ, "MAINSPRING_DATABASE_URL": url},
        capture_output=True,
        check=True,
    )
    return str(json.loads(done.stdout)["token"])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mainspring", *arguments, "--app", "chaos.jobs:app"]


@contextmanager
def running() -> Iterator[System]:
    """Started, with the definitions of `chaos.jobs` known; stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-chaos-"))
    folder.chmod(0o755)
    database = folder / "database"
    try:
        with embedded.running(database) as server:
            asyncio.run(migrate.migrate(server.url))
            _prepare(server.url)
            with Network.opened(server.url) as network:
                system = System(folder, server, network)
                try:
                    yield system
                finally:
                    system.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(url: str) -> None:
    os.environ["MAINSPRING_DATABASE_URL"] = url
    # In a process of its own: an app keeps the database that it was first used with.
    subprocess.run([sys.executable, "-m", "chaos.jobs"], check=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLES)
        connection.execute("insert into mainspring.tenants (tenant_id) values ('other')")
        connection.execute(_TRIGGER)
