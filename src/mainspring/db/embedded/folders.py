"""The data directory: where it is, who may reach it, how things in it come and go."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mainspring.db.embedded.accounts import (
    Account,
    barrier,
    is_known,
    is_passable,
    own_account,
    owner_of,
    system_account,
)
from mainspring.domain.errors.database import EmbeddedServerError

ADVICE = "choose another --data-dir or set a database URL"
_CLUSTER = "postgres"


@dataclass(frozen=True, slots=True)
class Home:
    folder: Path
    account: Account

    @property
    def cluster(self) -> Path:
        return self.folder / _CLUSTER

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid_file(self) -> Path:
        return self.cluster / "postmaster.pid"


def default_data_dir() -> Path:
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/mainspring")
    configured = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says to ignore a relative path.
    base = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "share"
    return base / "mainspring"


def open_home(folder: Path) -> Home:
    home = Home(folder, _server_account(folder))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _admit(home)
    return home


def _server_account(folder: Path) -> Account:
    """Ourselves; for root the owner of the database, or of its folder, or the system user."""
    if os.geteuid() != 0:
        return own_account()
    cluster = folder / _CLUSTER
    if (cluster / "PG_VERSION").exists() and (owner := owner_of(cluster)) is not None:
        return owner
    if (owner := owner_of(folder)) is not None and is_known(owner):
        return owner
    return system_account()


def _admit(home: Home) -> None:
    """Let the server's account pass into a new data directory; refuse what it cannot reach."""
    if not is_passable(home.folder, home.account) and _is_new(home.folder):
        os.chown(home.folder, -1, home.account.gid)
        home.folder.chmod(0o710)
    closed = barrier(home.folder, home.account)
    if closed is not None:
        raise EmbeddedServerError(
            f"{closed} is not accessible to the user {home.account.name}, which runs PostgreSQL "
            "for root; "
            f"choose another --data-dir such as /var/lib/mainspring"
        )


def _is_new(folder: Path) -> bool:
    return folder.stat().st_uid == os.geteuid() and not any(folder.iterdir())


def open_private(path: Path) -> int:
    """A descriptor, for the caller to close; a new file belongs to the owner of its folder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with suppress(FileExistsError):
        descriptor = os.open(path, flags | os.O_EXCL, 0o600)
        if os.geteuid() == 0:
            # So that the owner can use the data directory after root did.
            owner = path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        return descriptor
    return os.open(path, flags, 0o600)


def make_private(folder: Path, account: Account) -> None:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), account.uid}:
        raise EmbeddedServerError(f"{folder} was created by another user; remove it")
    os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    folder.chmod(0o700)


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
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


def remove_all(folder: Path, pattern: str) -> None:
    for leftover in folder.glob(pattern):
        # An orphaned initdb may still be writing there; the next start tries again.
        shutil.rmtree(leftover, ignore_errors=True)
