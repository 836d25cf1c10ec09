"""The server of a data directory: its files, its socket, its start and its end."""

import hashlib
import os
import shlex
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from mainspring.db.embedded import postmasters
from mainspring.db.embedded.accounts import barrier
from mainspring.db.embedded.folders import ADVICE, Home, made_whole, make_private, remove_all
from mainspring.db.embedded.owners import ensure_database
from mainspring.db.embedded.postmasters import (
    PATIENCE_SECONDS,
    POLL_SECONDS,
    PORT,
    SUPERUSER,
    Postmaster,
)
from mainspring.db.embedded.programs import MAJOR_VERSION, run
from mainspring.domain.errors.database import EmbeddedServerError

DATABASE = "mainspring"
SETTINGS = (
    "shared_buffers=256MB",
    "max_connections=200",
    "wal_compression=on",  # the wheel is built without lz4
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
)

_CRASH_PATIENCE_SECONDS = 10
_TRIES = 3
_LONGEST_SOCKET_PATH = 103  # macOS; Linux allows 107


def serve(home: Home) -> Postmaster:
    """The server that answers, created and started if need be, with our database in it."""
    _ensure_cluster(home)
    return resume(home)


def resume(home: Home, socket_dir: Path | None = None) -> Postmaster:
    """The same for a cluster that exists; who uses its server knows it by the folder given."""
    _ensure_usable(home)
    for _ in range(_TRIES):
        postmaster = postmasters.answering(home) or _start(home, socket_dir)
        try:
            ensure_database(postmaster, DATABASE)
            return postmaster
        except psycopg.OperationalError as error:
            # It may have been killed since it answered; then the next try starts it.
            if postmaster.answers():
                raise
            ended = error
    raise ended


def stop(home: Home) -> None:
    postmaster = postmasters.alive(home)
    # pg_ctl would signal whatever process has the recorded pid by now.
    if postmaster is None:
        return
    run(home, "pg_ctl", "stop", "-s", "-w", "-t", str(PATIENCE_SECONDS), "-m", "fast")
    with suppress(OSError):
        Path(postmaster.socket_dir).rmdir()


def _ensure_cluster(home: Home) -> None:
    remove_all(home.folder, "*.new-*")
    if not home.cluster.exists():
        _create_cluster(home)


def _ensure_usable(home: Home) -> None:
    if home.cluster.stat().st_uid != home.account.uid:
        raise EmbeddedServerError(f"{home.cluster} belongs to another user; {ADVICE}")
    try:
        version = (home.cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedServerError(f"{home.cluster} contains no database; {ADVICE}") from None
    if version != MAJOR_VERSION:
        raise EmbeddedServerError(
            f"{home.cluster} was created by PostgreSQL {version}, but this is {MAJOR_VERSION}; "
            f"move its data with pg_dump of PostgreSQL {version}, or {ADVICE}"
        )


def _create_cluster(home: Home) -> None:
    with made_whole(home.cluster) as unfinished:
        make_private(unfinished, home.account)
        run(
            home,
            "initdb",
            f"--pgdata={unfinished}",
            f"--username={SUPERUSER}",
            "--auth-local=trust",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
        )


def _start(home: Home, known_socket_dir: Path | None) -> Postmaster:
    crashed = home.pid_file.exists()
    if crashed:
        postmasters.end_survivors(home)
    socket_dir = _ensure_socket_dir(home, known_socket_dir)
    _clear_stale(home, socket_dir)
    deadline = time.monotonic() + _CRASH_PATIENCE_SECONDS
    failure = _launch(home, socket_dir)
    # Asked even after a failure: a server that a killed process had begun to start counts.
    while (found := postmasters.answering(home)) is None:
        # The backends of a killed server keep its memory until they notice.
        if not crashed or time.monotonic() > deadline:
            raise failure
        time.sleep(POLL_SECONDS)
        failure = _launch(home, socket_dir)
    return found


def _launch(home: Home, socket_dir: Path) -> EmbeddedServerError:
    """Give what is to be raised if no server comes of it."""
    options = _server_options(home, socket_dir)
    try:
        run(home, "pg_ctl", "start", "-s", "-w", "-t", str(PATIENCE_SECONDS), "-o", options)
    except EmbeddedServerError as error:
        return error
    return EmbeddedServerError(f"the server exited right after it started; see {home.log}")


def _clear_stale(home: Home, socket_dir: Path) -> None:
    """Remove what names a process that is not our server but lives: PostgreSQL would stop at it.

    Its pid was given to another program, as after every restart of a container. A dead one
    is left to PostgreSQL, which then looks harder for survivors of the old server, and so is one
    that is hidden from us, which may be our server.
    """
    recorded = postmasters.recorded(home)
    if recorded is not None and postmasters.is_hidden(recorded.pid):
        return
    with suppress(ProcessLookupError, PermissionError):
        if recorded is not None:
            os.kill(recorded.pid, 0)
            home.pid_file.unlink()
    (socket_dir / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def _server_options(home: Home, socket_dir: Path) -> str:
    quoted = str(socket_dir).replace('"', '""')
    settings = (
        "listen_addresses=",
        f"port={PORT}",
        f'unix_socket_directories="{quoted}"',
        "unix_socket_permissions=0700",
        *SETTINGS,
    )
    arguments = [word for setting in settings for word in ("-c", setting)]
    # pg_ctl hands this to a shell; its own -D and -l would reach the shell unquoted.
    return shlex.join(["-D", str(home.cluster), *arguments])


def _ensure_socket_dir(home: Home, known: Path | None) -> Path:
    """Where a killed server had it, since its users look for the next one there."""
    folder = known or _recorded_socket_dir(home)
    if folder is None or not folder.parent.is_dir():
        folder = home.folder / "socket"
        if not _can_hold_a_socket(folder):
            folder = _short_folder(home)
    make_private(folder, home.account)
    return folder


def _recorded_socket_dir(home: Home) -> Path | None:
    recorded = postmasters.recorded(home)
    folder = Path(recorded.socket_dir) if recorded else None
    # The server's account can write the pid file, and root would give it any folder named there.
    is_ours = folder is not None and folder.name == _short_name(home)
    return folder if is_ours else None


def _can_hold_a_socket(folder: Path) -> bool:
    # In a URL a comma separates hosts, and nothing can quote it.
    short = len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= _LONGEST_SOCKET_PATH
    return short and "," not in str(folder)


def _short_folder(home: Home) -> Path:
    configured = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(configured or tempfile.gettempdir())
    if not base.is_dir() or barrier(base, home.account) is not None:
        base = Path("/tmp")  # noqa: S108 - the folder in it is private and its owner is checked
    return base / _short_name(home)


def _short_name(home: Home) -> str:
    return f"mainspring-{hashlib.sha256(os.fsencode(home.folder)).hexdigest()[:16]}"
