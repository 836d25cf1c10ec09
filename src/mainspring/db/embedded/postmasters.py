"""The server's process: recorded in its pid file, and believed only if it is really ours."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from psycopg import pq

from mainspring.db import processes
from mainspring.db.embedded.folders import Home
from mainspring.domain.errors.database import EmbeddedServerError

PORT = 5432
SUPERUSER = "postgres"
PATIENCE_SECONDS = 300  # replaying max_wal_size after a crash can take minutes
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    socket_dir: str

    def url(self, database: str, user: str) -> str:
        # The port is named because PGPORT in a caller's environment would win over the default.
        host = quote(self.socket_dir, safe="")
        return f"postgresql://{user}@/{database}?host={host}&port={PORT}"

    def answers(self) -> bool:
        """Whether it accepts connections."""
        return self._ping() == pq.Ping.OK

    def is_listening(self) -> bool:
        """The same of one that is starting or stopping too."""
        return self._ping() in (pq.Ping.OK, pq.Ping.REJECT)

    def _ping(self) -> pq.Ping:
        if not self.socket_dir:
            return pq.Ping.NO_ATTEMPT
        url = self.url("postgres", SUPERUSER) + "&connect_timeout=5"
        # A ping, since a server with all its connections taken is running too.
        return pq.Ping(pq.PGconn.ping(os.fsencode(url)))


def answering(home: Home) -> Postmaster | None:
    """The server that answers, waiting for one that is starting or stopping."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := alive(home)) is not None:
        if found.answers():
            return found
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the server of {home.folder} does not respond; stop its process {found.pid}"
            )
        time.sleep(POLL_SECONDS)
    return None


def alive(home: Home) -> Postmaster | None:
    """The recorded server, if that process runs and is this data directory's."""
    found = recorded(home)
    if found is None:
        return None
    command = _command_line(found.pid)
    # Only our server listens in its folder, so that tells it from a process nobody may look at.
    is_ours = found.is_listening() if command is None else os.fsencode(home.cluster) in command
    return found if is_ours else None


def recorded(home: Home) -> Postmaster | None:
    """What the pid file says; the process may be gone, or be another program by now."""
    try:
        lines = os.fsdecode(home.pid_file.read_bytes()).splitlines()
        # The line order is PostgreSQL's; the fifth is empty until it listens.
        return Postmaster(int(lines[0]), lines[4] if len(lines) > 4 else "")
    except (FileNotFoundError, IndexError, ValueError):
        return None


def is_hidden(pid: int) -> bool:
    """Whether there is such a process and it cannot be known what it runs."""
    return _command_line(pid) is None


def end_survivors(home: Home) -> None:
    """Make the processes of a killed server leave; one that computes would not notice for long."""
    for process in Path("/proc").glob("[0-9]*"):
        # Of another user, or gone by now.
        with suppress(OSError):
            if _is_survivor(home, process):
                os.kill(int(process.name), signal.SIGQUIT)


def _is_survivor(home: Home, process: Path) -> bool:
    is_ours = (process / "cwd").readlink() == home.cluster
    is_postgres = (process / "exe").readlink().name.startswith("postgres")
    # A postmaster names the cluster in its command line, and its children do not.
    command = (process / "cmdline").read_bytes()
    return is_ours and is_postgres and os.fsencode(home.cluster) not in command


def _command_line(pid: int) -> bytes | None:
    """Empty for a process that is gone, a zombie included; None for one that is hidden from us, as
    those of other users are where /proc is mounted with hidepid."""
    if not Path("/proc/self/cmdline").exists():
        listing = ("/bin/ps", "-ww", "-o", "command=", "-p", str(pid))
        return subprocess.run(listing, check=False, capture_output=True).stdout
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None if processes.exists(pid) else b""
