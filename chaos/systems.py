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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

import psycopg

from chaos.networks import Network
from chaos.shares import LIGHT, PLACES
from chaos.waits import HEAVY, LEASE_SECONDS, POLL_SECONDS
from mainspring.db import embedded, migrate

_ROOT: Final = Path(__file__).resolve().parent.parent
_SETTINGS: Final = {
    "MAINSPRING_LEASE_SECONDS": str(LEASE_SECONDS),
    "MAINSPRING_POLL_SECONDS": str(POLL_SECONDS),
    "MAINSPRING_DRAIN_SECONDS": "3",
    "MAINSPRING_DEFAULT_SCHEDULES": "false",
    "MAINSPRING_LOG_FORMAT": "json",
    "PYTHONUNBUFFERED": "1",
}
_TABLES: Final = """
create schema chaos;
create table chaos.effects (job_id bigint not null, n bigint not null, tenant text not null);
create table chaos.claims (
    at timestamptz not null, job_id bigint not null, worker_id bigint, fence bigint);
create table chaos.workers (at timestamptz not null, worker_id bigint not null, pid integer);
create function chaos.note_claim() returns trigger language plpgsql security definer as $$
begin
    insert into chaos.claims values (clock_timestamp(), new.job_id, new.worker_id, new.fence);
    return null;
end $$;
create function chaos.note_worker() returns trigger language plpgsql security definer as $$
begin
    insert into chaos.workers values (clock_timestamp(), new.worker_id, new.pid);
    return null;
end $$;
create trigger note_claim after update on mainspring.jobs for each row
    when (old.fence is distinct from new.fence) execute function chaos.note_claim();
create trigger note_worker after insert on mainspring.workers for each row
    execute function chaos.note_worker();
"""
_TRIGGER: Final = """
insert into mainspring.triggers (tenant_id, name, event, definition, payload)
select tenant, 'chaos', 'chaos.happened', 'evented', '{"n": "{{event.n}}"}'
  from unnest(array['default', %s]) as tenant
"""


@dataclass(slots=True)
class Life:
    """One run of a process, in seconds since the epoch; `ended_at` is when it was told to end."""

    pid: int
    started_at: float
    ended_at: float | None = None


class Process:
    """One role that is started again whenever it ends."""

    def __init__(self, name: str, arguments: list[str], url: str, folder: Path) -> None:
        self.name = name
        self.queues: frozenset[str] = frozenset()
        self.lives: list[Life] = []
        self.outages: list[tuple[float, float]] = []
        self.crashes = 0
        self._arguments, self._url, self._folder = arguments, url, folder
        self._closing = threading.Event()
        self._process = self._start()
        threading.Thread(target=self._keep, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> None:
        if self._process.poll() is None:
            if number in {SIGKILL, SIGTERM}:
                self._note_end()
            os.killpg(self.pid, number)

    @contextmanager
    def out(self, *, and_seconds: float = 0.0) -> Iterator[None]:
        """It lives and cannot work inside the block, nor for some seconds after it."""
        start = time.time()
        yield
        self.outages.append((start, time.time() + and_seconds))

    def end(self) -> None:
        self._closing.set()
        self.signal(SIGKILL)
        self._process.wait(10)

    def logs(self) -> list[Path]:
        """One for each life."""
        return sorted(self._folder.glob(f"{self.name}.*"))

    def _keep(self) -> None:
        """As systemd or Kubernetes would."""
        while True:
            self._process.wait()
            if self.lives[-1].ended_at is None:
                self.crashes += 1  # Nobody told it to end.
            self._note_end()
            if self._closing.wait(0.1):
                return
            self._process = self._start()

    def _note_end(self) -> None:
        if self.lives[-1].ended_at is None:
            self.lives[-1].ended_at = time.time()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")
        }
        environment |= {
            **_SETTINGS,
            "MAINSPRING_DATABASE_URL": self._url,
            "PYTHONPATH": f"{_ROOT}/src:{_ROOT}",
        }
        path = self._folder / f"{self.name}.{len(self.lives) + 1:04d}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                self._arguments, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.lives.append(Life(process.pid, time.time()))
        return process


class System:
    """Everything that runs."""

    def __init__(self, folder: Path, server: embedded.EmbeddedServer, network: Network) -> None:
        self.folder, self.network = folder, network
        self.url, self._superuser_url = server.url, server.superuser_url
        self.outages: list[tuple[float, float]] = []
        near = ("default", "mainspring")
        self.far_worker = self._worker("worker-far", (*near, "far"), is_far=True)
        self.workers = [
            self._worker("worker-0", near),
            self._worker("worker-1", near),
            self.far_worker,
        ]
        self.schedulers = [self._role(f"scheduler-{each}", "scheduler") for each in range(2)]
        port = _free_port()
        self.api_url = f"http://127.0.0.1:{port}"
        self.server = self._role("server", "server", "--port", str(port))
        self.token = _token(self.url, "chaos", "operator")
        self.light_token = _token(self.url, "light", "admin", "--tenant", LIGHT)
        self.processes = [*self.workers, *self.schedulers, self.server]

    def _worker(self, name: str, queues: tuple[str, ...], *, is_far: bool = False) -> Process:
        command = _command("worker", "--concurrency", str(PLACES), "--queues", ",".join(queues))
        prefix, url = (self.network.prefix, self.network.url) if is_far else ([], self.url)
        process = Process(name, [*prefix, *command], url, self.folder)
        process.queues = frozenset(queues)
        return process

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

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """Nobody can connect inside the block."""
        start = time.time()
        yield
        self.outages.append((start, time.time()))

    def connect(self) -> psycopg.Connection:
        """As the superuser, who may break everything."""
        return psycopg.connect(self._superuser_url, autocommit=True, connect_timeout=3)


def _token(url: str, name: str, role: str, *options: str) -> str:
    """Made as a person would."""
    create = ["tokens", "create", name, "--role", role, *options, "--json"]
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
    role, *options = arguments
    return [sys.executable, "-m", "mainspring", role, "--app", "chaos.jobs:app", *options]


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
        for tenant in (LIGHT, HEAVY):
            connection.execute("insert into mainspring.tenants (tenant_id) values (%s)", (tenant,))
        connection.execute(_TRIGGER, (LIGHT,))
