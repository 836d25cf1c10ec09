"""Who runs the server, and what that account can reach."""

import os
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mainspring.domain.errors.database import EmbeddedServerError

if sys.platform != "win32":
    import pwd

SYSTEM_USER = "mainspring"


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int


def server_account() -> Account:
    """Ourselves; for root the system user, which is created if need be."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    with suppress(KeyError):
        return _system_account()
    return _create_system_account()


def barrier(path: Path, account: Account) -> Path | None:
    """The outermost part of the path that the account may not enter or execute."""
    parts = (*reversed(path.parents), path)
    return next((part for part in parts if not is_passable(part, account)), None)


def is_passable(path: Path, account: Account) -> bool:
    found = path.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _system_account() -> Account:
    entry = pwd.getpwnam(SYSTEM_USER)
    return Account(entry.pw_uid, entry.pw_gid)


def _create_system_account() -> Account:
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
