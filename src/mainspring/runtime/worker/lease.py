"""A worker's lease.

    register ─▶ renew every third of the lease, from a thread of its own ─▶ remove at the end
                   └ no row: it ran out (a pause, a dead network) ─▶ lost; a new one, a new id

The thread has its own connection and nothing else to do, so a handler that blocks the event
loop does not cost the lease. A lease that ran out stays lost: everything claimed under it belongs
to whoever recovers it, and the worker starts over under a new id.
"""

import os
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection

from mainspring.db import connect
from mainspring.db.blocking_sessions import ConnectionSession, at_once
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.types import WorkerId
from mainspring.store import workers

_RETRY_SECONDS = 0.2


class LeaseKeeper:
    """Renews one worker's lease until it is closed; `on_lost` is called in the thread."""

    def __init__(
        self,
        url: str,
        worker_id: WorkerId,
        *,
        lease: timedelta,
        on_lost: Callable[[WorkerId], None],
        use_pooler: bool = False,
    ) -> None:
        self._url, self._worker_id, self._lease = url, worker_id, lease
        self._on_lost, self._use_pooler = on_lost, use_pooler
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mainspring-lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        pause = self._lease.total_seconds() / 3
        while not self._closed.wait(pause):
            try:
                if connection is None or connection.closed:
                    connection = connect.connect_sync(self._url, use_pooler=self._use_pooler)
                session = ConnectionSession(connection)
                if not at_once(workers.renew(session, self._worker_id, self._lease)):
                    self._on_lost(self._worker_id)
                    break
                pause = self._lease.total_seconds() / 3
            except (psycopg.Error, DatabaseError, OSError):
                # The lease may still be saved when the database is back in time.
                pause = _RETRY_SECONDS
                if connection is not None:
                    connection.close()
        if connection is not None:
            connection.close()


def host_name() -> str:
    return socket.gethostname()


def process_identity() -> str:
    """Names this very process: another with the same pid, later or elsewhere, differs."""
    try:
        return _identity(os.getpid()) or ""
    except OSError:
        return ""


def is_gone(identity: str) -> bool:
    """Whether a process of this host is certainly dead; False where one cannot know."""
    scope, _, process = identity.rpartition("/")
    if not identity or scope != _scope():
        return False
    pid = int(process.partition(":")[0])
    if not _exists(pid):
        return True
    try:
        return _identity(pid) != identity
    except OSError:
        return False  # With hidepid, /proc shows nothing of other users' processes.


def _exists(pid: int) -> bool:
    """False only if there is no such process; one of another user may not be signaled."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _identity(pid: int) -> str | None:
    """None for a zombie, which runs nothing, and where processes cannot be told apart."""
    scope = _scope()
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if not scope or state == "Z" else f"{scope}/{pid}:{started}"


def _scope() -> str:
    """The boot and the pid namespace, in which a pid means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
