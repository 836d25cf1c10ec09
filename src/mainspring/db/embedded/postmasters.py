"""The server's process: recorded in its pid file, and believed only if it is really ours."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from psycopg import pq

from mainspring.db.embedded.folders import Home
from mainspring.domain.errors.database import EmbeddedServerError

PORT = 5432
PATIENCE_SECONDS = 300  # replaying max_wal_size after a crash can take minutes
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    socket_dir: str

    def url(self, database: str) -> str:
        # The port is named because PGPORT in a caller's environment would win over the default.
        host = quote(self.socket_dir, safe="")
        return f"postgresql://postgres@/{database}?host={host}&port={PORT}"

    def answers(self) -> bool:
        if not self.socket_dir:
            return False
        url = self.url("postgres") + "&connect_timeout=5"
        # A ping, since a server with all its connections taken is running too.
        return pq.PGconn.ping(os.fsencode(url)) == pq.Ping.OK


def answering(home: Home) -> Postmaster | None:
    """The server that answers, waiting for one that is starting or stopping."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := alive(home)) is not None:
        if found.answers():
            return found
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the server of {home.folder} does not answer; end its process {found.pid}"
            )
        time.sleep(POLL_SECONDS)
    return None


def alive(home: Home) -> Postmaster | None:
    """The recorded server, if that process runs and is this data directory's."""
    found = recorded(home)
    if found is None or os.fsencode(home.cluster) not in _command_line(found.pid):
        return None
    return found


def recorded(home: Home) -> Postmaster | None:
    """What the pid file says; the process may be gone, or be another program by now."""
    try:
        lines = os.fsdecode(home.pid_file.read_bytes()).splitlines()
        # The line order is PostgreSQL's; the fifth is empty until it listens.
        return Postmaster(int(lines[0]), lines[4] if len(lines) > 4 else "")
    except (FileNotFoundError, IndexError, ValueError):
        return None


def _command_line(pid: int) -> bytes:
    """Empty for a process that is gone, a zombie included."""
    if not Path("/proc/self/cmdline").exists():
        listing = ("/bin/ps", "-ww", "-o", "command=", "-p", str(pid))
        return subprocess.run(listing, check=False, capture_output=True).stdout
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
