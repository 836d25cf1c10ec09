"""A worker's lease.

    register ─▶ renew from a thread of its own ─▶ remove at the end
                   ├ nothing moves: hand back what has not begun, renew no further, let it go
                   └ no row: it ran out (an outage, a pause) ─▶ lost; a new one, a new id

The thread has its own connection and nothing else to do. It renews the lease to one lease beyond
the oldest sign of life of the worker (`progress.py`), so a handler that blocks the event loop for a
moment does not cost the lease, and a worker that hangs does not keep its jobs. It watches the
event loop, and the event loop watches it. A lease that ran out stays lost: everything claimed under
it belongs to whoever recovers it, and the worker starts over under a new id. It says whether a
handler may have kept it from renewing the lease; after an outage no job is to blame.
"""

import asyncio
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import Connection

from mainspring import telemetry
from mainspring.db import connect, processes
from mainspring.db.blocking_sessions import ConnectionSession, at_once
from mainspring.db.reconnecting import ReconnectingConnection, shut_down
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.health import Pulse
from mainspring.domain.processes import ClockReading
from mainspring.domain.sqlstates import is_worth_retrying
from mainspring.domain.types import WorkerId
from mainspring.runtime.stopwatch import Stopwatch
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.progress import Progress, SignOfLife
from mainspring.store import attempts, workers
from mainspring.store.attempts import Report

_UNREACHABLE = (psycopg.Error, DatabaseError, OSError)


class Lease:
    """What a worker knows of its lease. By its own clock it ends no later than in the database."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.valid_until = -math.inf
        self.is_stalled = False  # Nothing moves, so nothing more should be claimed.

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    @property
    def tick(self) -> float:
        """How often the thread and the event loop look at each other."""
        return min(max(self.seconds / 20, 0.05), 0.5)

    @property
    def silent_after(self) -> float:
        """For how long the event loop may do nothing before it is called blocked."""
        return min(max(self.seconds / 8, 0.25), 2.0)

    @property
    def ask_after(self) -> float:
        """For how long a connection may wait before the server is asked about it."""
        return min(self.seconds / 4, 10.0)

    @property
    def patience(self) -> float:
        """For how long a connection may be silent."""
        return min(self.seconds, connect.PATIENCE_SECONDS)

    def has_left(self, seconds: float = 0.0) -> bool:
        return time.monotonic() + seconds < self.valid_until


class LeaseOwner(Protocol):
    """The worker, as the thread sees it."""

    def lease_lost(self, worker_id: WorkerId, has_hung: bool) -> None:
        """Called in the event loop; whether the process, and not the database, was silent."""

    def resumed(self, handed_back: list[ClaimedJob]) -> None:
        """Called in the event loop after jobs were handed back, and when things move again."""

    def hand_back_refused(self, reports: list[Report]) -> None:
        """Called in the event loop: jobs could not be handed back together."""

    def withdraw(self) -> list[ClaimedJob]:
        """Called in the thread: give up what has not begun."""

    def stalled_facts(self) -> Mapping[str, Any]:
        """Called in the thread: what is known of what blocks the event loop."""


class LeaseKeeper:
    """Renews one worker's lease until it is closed or the lease is lost."""

    def __init__(
        self,
        url: str,
        worker_id: WorkerId,
        *,
        lease: Lease,
        progress: Progress,
        owner: LeaseOwner,
        use_pooler: bool = False,
    ) -> None:
        self._url, self._worker_id, self._use_pooler = url, worker_id, use_pooler
        self._lease, self._progress, self._owner = lease, progress, owner
        self._loop = asyncio.get_running_loop()
        self._connection: Connection[Any] | None = None
        self._lock = threading.Lock()
        self._busy_since: float | None = None
        self._looked_at = self._rested_at = time.monotonic()
        self._withdrawn: list[ClaimedJob] = []
        self._clock: ClockReading | None = None
        self._is_over = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mainspring-lease", daemon=True)

    def start(self) -> None:
        self._lease.is_stalled = False
        self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def pulse(self) -> Pulse | None:
        """For any thread; None once there is nothing to renew."""
        if self._is_over:
            return None
        is_busy = self._busy_since is not None  # It does nothing but ask the database.
        return Pulse("lease thread", self._rested_at, self._lease.tick, is_busy)

    def look_after(self) -> None:
        """Called in the event loop: free the thread from a connection that hangs."""
        since = self._busy_since
        if since is not None and time.monotonic() - since > self._lease.seconds / 2:
            with self._lock:
                if self._connection is not None:
                    shut_down(self._connection)

    def _run(self) -> None:
        is_held = True
        while is_held and not self._closed.wait(self._lease.tick):
            self._busy_since = time.monotonic()
            try:
                is_held = self._pass(time.monotonic())
            except _UNREACHABLE:
                # The lease may still be saved when the database is back in time.
                self._disconnect()
            self._busy_since = None
            self._rested_at = time.monotonic()
        self._is_over = True
        self._disconnect()

    def _pass(self, now: float) -> bool:
        """Whether the lease is still held."""
        oldest = self._progress.oldest(now)
        ends_at = oldest.at + self._lease.seconds
        if ends_at <= now:
            self._let_go(has_hung=self._has_hung(now))
            return False
        was_paused = now - self._looked_at > self._lease.tick + self._lease.silent_after / 2
        self._looked_at = now
        if not was_paused:  # Else the event loop may just not have had its turn.
            self._note_stall(oldest, now)
        if self._withdrawn:
            self._hand_back()
        # In a stall the end stays where it is, so there is one more renewal at most.
        worth = self._lease.tick if self._lease.is_stalled else self._lease.seconds / 3
        if ends_at - self._lease.valid_until > worth and not self._renew(ends_at):
            self._call(self._owner.lease_lost, self._worker_id, self._has_hung(now))
            return False
        self._ask_about_waiting(now)
        return True

    def _renew(self, ends_at: float) -> bool:
        session = self._session()
        left = timedelta(seconds=max(ends_at - time.monotonic(), 0))
        watch = Stopwatch()
        database_at = at_once(workers.renew(session, self._worker_id, left, clock=self._clock))
        if database_at is None:
            return False
        # Stored by the next renewal, so that a reading costs no round trip of its own.
        self._clock = watch.read(database_at)
        self._lease.valid_until = ends_at
        return True

    def _note_stall(self, oldest: SignOfLife, now: float) -> None:
        lease, silence = self._lease, self._progress.silence(now)
        is_blocked = silence >= lease.silent_after  # Then no connection could be read either.
        if not is_blocked and now - oldest.at < 2 * lease.ask_after:
            if lease.is_stalled:
                lease.is_stalled = False
                self._call(self._owner.resumed, [])
            return
        withdrawn = self._owner.withdraw()
        self._withdrawn += withdrawn
        if not lease.is_stalled:
            lease.is_stalled = True
            blocking = self._owner.stalled_facts() if is_blocked else {}
            telemetry.event(
                "worker_stalled",
                **{"worker": self._worker_id, **blocking},
                hangs="event loop" if is_blocked else oldest.of,
                seconds=round(silence if is_blocked else now - oldest.at, 1),
                handed_back=len(withdrawn),
            )

    def _hand_back(self) -> None:
        """What the database refuses stays with the worker until the event loop moves: the lease
        must not end because of it."""
        session = self._session()
        reports = [job.report for job in self._withdrawn]
        queues: set[str] = set()
        try:
            queues = at_once(attempts.hand_back(session, reports))
        except psycopg.Error as error:
            if is_worth_retrying(error.sqlstate):
                raise
            self._call(self._owner.hand_back_refused, reports)
        if queues:
            at_once(workers.wake(session, queues))
        handed_back, self._withdrawn = self._withdrawn, []
        self._call(self._owner.resumed, handed_back)

    def _has_hung(self, now: float) -> bool:
        """Whether the event loop or all of the process was held up: by a handler, perhaps."""
        paused = now - self._rested_at - self._lease.tick
        return max(self._progress.silence(now), paused) >= self._lease.silent_after

    def _let_go(self, *, has_hung: bool) -> None:
        """Nothing has moved for a whole lease: it ends, here and in the database."""
        self._call(self._owner.lease_lost, self._worker_id, has_hung)
        with suppress(*_UNREACHABLE):
            at_once(workers.expire_workers(self._session(), [self._worker_id]))

    def _ask_about_waiting(self, now: float) -> None:
        """Ask the server about connections that wait, and break off those it does nothing for."""
        if self._progress.silence(now) > self._lease.silent_after:
            return  # Their answers may be there, and nobody reads them.
        waiting = self._progress.waiting(now, self._lease.ask_after)
        pids = {each.name: pid for each in waiting if (pid := each.backend_pid) is not None}
        if not pids:
            return
        just_now = timedelta(seconds=self._lease.ask_after)
        asked = workers.backends_at_work(self._session(), pids.values(), pids, just_now=just_now)
        working = at_once(asked)
        for each in waiting:
            pid = pids.get(each.name)
            if pid is not None and self._progress.note_answer(each, working.get(pid), now):
                self._call(_break_off, each, pid)

    def _session(self) -> ConnectionSession:
        if self._connection is None or self._connection.closed:
            connection = connect.connect_sync(
                connect.for_own_statements(self._url),
                name="mainspring lease",
                use_pooler=self._use_pooler,
                patience_seconds=self._lease.patience,
            )
            with self._lock:
                self._connection = connection
        return ConnectionSession(self._connection)

    def _disconnect(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _call(self, action: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # The event loop is closed.
            self._loop.call_soon_threadsafe(action, *arguments)


def _break_off(connection: ReconnectingConnection, pid: int) -> None:
    if connection.waiting_since is not None and connection.backend_pid == pid:
        connection.abort()


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
    if not processes.exists(pid):
        return True
    try:
        return _identity(pid) != identity
    except OSError:
        return False  # With hidepid, /proc shows nothing of other users' processes.


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
