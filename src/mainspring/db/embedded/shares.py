"""Shares in a running server, counted within this process and locked between processes."""

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg

from mainspring.db.embedded import reaper
from mainspring.db.embedded.folders import ADVICE, Home, default_data_dir, open_home, open_private
from mainspring.db.embedded.owners import OWNER
from mainspring.db.embedded.postmasters import SUPERUSER, Postmaster
from mainspring.db.embedded.programs import installation
from mainspring.db.embedded.servers import DATABASE, resume, serve, stop
from mainspring.db.embedded.watchers import Watcher
from mainspring.domain.errors.database import EmbeddedServerError

if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True, eq=False, slots=True)
class EmbeddedServer:
    """A share in a running server; each acquire gives its own, to be released once. `url` logs in
    as the owner of the database; `superuser_url` is for servers that only tests use."""

    data_dir: Path
    url: str
    superuser_url: str = field(repr=False)
    pid: int


@dataclass(slots=True)
class _Hold:
    """This process's use of one data directory."""

    home: Home
    users: int
    servers: set[EmbeddedServer] = field(default_factory=set)
    watcher: Watcher | None = None


_holds: dict[Path, _Hold] = {}
_guard = threading.RLock()


def acquire(data_dir: Path | None = None) -> EmbeddedServer:
    """Join the server of this data directory, starting it if need be; blocks for seconds.

    A forked child does not inherit its parent's share and acquires its own.
    """
    if sys.platform == "win32":
        raise EmbeddedServerError("the embedded server does not run on Windows; set a database URL")
    installation()
    folder = (data_dir or default_data_dir()).expanduser().resolve()
    with _guard, _failures_explained(folder):
        home = open_home(folder)
        with _locked(home):
            return _join(home)


def release(server: EmbeddedServer) -> None:
    """Leave the server; the last user's leaving stops it. Harmless when done twice."""
    with _guard:
        hold = _holds.get(server.data_dir)
        if hold is None or server not in hold.servers:
            return
        hold.servers.remove(server)
        if hold.servers:
            return
        if hold.watcher is not None:
            hold.watcher.stop()
        with _failures_explained(server.data_dir):
            _leave_locked(hold)
    if hold.watcher is not None:
        hold.watcher.join()


def stop_unused(folder: Path) -> None:
    """Stop the server of a data directory that exists unless some process has a share in it."""
    with _guard, _failures_explained(folder):
        home = open_home(folder)
        with _locked(home):
            if home.folder not in _holds:
                _leave(_enter(home))


@contextmanager
def running(data_dir: Path | None = None) -> Iterator[EmbeddedServer]:
    server = acquire(data_dir)
    try:
        yield server
    finally:
        release(server)


def _join(home: Home) -> EmbeddedServer:
    hold = _holds.get(home.folder) or _enter(home)
    try:
        postmaster = serve(home)
    except BaseException:
        if not hold.servers:
            _leave(hold)
        raise
    server = EmbeddedServer(
        home.folder,
        postmaster.url(DATABASE, OWNER),
        postmaster.url(DATABASE, SUPERUSER),
        postmaster.pid,
    )
    hold.servers.add(server)
    if hold.watcher is None:
        _ensure_reaper(home)
        revive = partial(_revive, hold, Path(postmaster.socket_dir))
        hold.watcher = Watcher(home, postmaster, revive)
    return server


def _ensure_reaper(home: Home) -> None:
    descriptor = open_private(home.folder / "reaper")
    try:
        reaper.leave_beside(home.folder, descriptor)
    finally:
        os.close(descriptor)


def _revive(hold: _Hold, socket_dir: Path) -> Postmaster | None:
    """The server, started again if no other process did; None once we have left."""
    home = hold.home
    with _guard, _failures_explained(home.folder):
        if _holds.get(home.folder) is not hold:
            return None
        if not home.cluster.exists():
            raise EmbeddedServerError(
                f"{home.cluster} was removed while its server was in use; put it back, or stop "
                "every process that uses it and start again with an empty database"
            )
        with _locked(home):
            _share_anew(hold)
            return resume(home, socket_dir)


def _share_anew(hold: _Hold) -> None:
    """A data directory that was put back has another file to be counted by."""
    before = hold.users
    hold.users = _share(hold.home)
    os.close(before)


def _enter(home: Home) -> _Hold:
    hold = _Hold(home, users=_share(home))
    _holds[home.folder] = hold
    return hold


def _share(home: Home) -> int:
    descriptor = open_private(home.folder / "users")
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _leave_locked(hold: _Hold) -> None:
    if hold.home.folder.exists():
        with _locked(hold.home):
            _leave(hold)
    else:
        # PostgreSQL ends by itself when its files are gone.
        _give_up(hold)


def _leave(hold: _Hold) -> None:
    try:
        fcntl.flock(hold.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stop(hold.home)
    except BlockingIOError:
        return
    finally:
        _give_up(hold)


def _give_up(hold: _Hold) -> None:
    del _holds[hold.home.folder]
    os.close(hold.users)


def _release_all() -> None:
    for hold in list(_holds.values()):
        for server in list(hold.servers):
            release(server)


def _forget() -> None:
    """A forked child shares its parent's locks; it must neither keep nor give them up."""
    global _guard  # noqa: PLW0603 - another thread of the parent may have held it
    _guard = threading.RLock()
    for hold in _holds.values():
        os.close(hold.users)
    _holds.clear()


atexit.register(_release_all)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    descriptor = open_private(home.folder / "lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A child forked meanwhile has the lock too, and closing would leave it there.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


@contextmanager
def _failures_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise EmbeddedServerError(f"{folder} is not a directory; {ADVICE}") from error
    except PermissionError as error:
        place = error.filename or folder
        raise EmbeddedServerError(f"{place} is not accessible to this user; {ADVICE}") from error
    except (OSError, psycopg.Error) as error:
        raise EmbeddedServerError(f"no database can run in {folder}: {error}; {ADVICE}") from error
