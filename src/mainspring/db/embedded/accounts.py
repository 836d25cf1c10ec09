"""Which account runs the server, and what that account can reach.

An ordinary user runs it as itself. For root it is whoever owns what is already there: an account
that is created anew may have another number than the one the files were written by. Root without
a data directory uses the system user `mainspring`, and creates it under a lock: of two `useradd`
at once both succeed, and the second gives the user another number.
"""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mainspring.domain.errors.database import EmbeddedServerError

if sys.platform != "win32":
    import fcntl
    import grp
    import pwd

SYSTEM_USER = "mainspring"

_ADVICE = f"create a system user named {SYSTEM_USER}, run as another user or set a database URL"
_SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
# Only root writes in /run, so no other user can create the lock file first or hold its lock.
_LOCK = Path("/run/mainspring-account.lock")
_PASSWD = Path("/etc/passwd")


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int


def own_account() -> Account:
    return Account(_name_of(os.geteuid()), os.geteuid(), os.getegid())


def system_account() -> Account:
    """The system user, created if need be; for root."""
    return _find_system_account() or _create_system_account()


def owner_of(path: Path) -> Account | None:
    """None if the path does not exist or belongs to root, which PostgreSQL refuses to run as."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found.st_uid == 0:
        return None
    with suppress(KeyError):
        return _account(pwd.getpwuid(found.st_uid))
    return Account(_name_of(found.st_uid), found.st_uid, found.st_gid)


def is_known(account: Account) -> bool:
    """Whether the account has a name; initdb refuses to run without one."""
    with suppress(KeyError):
        return pwd.getpwuid(account.uid).pw_uid == account.uid
    return False


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


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _account(entry: "pwd.struct_passwd") -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _find_system_account() -> Account | None:
    # The file first: nscd may answer from before the user was created.
    with suppress(FileNotFoundError):
        for line in _PASSWD.read_text(errors="replace").splitlines():
            name, *fields = line.split(":")
            if name == SYSTEM_USER:
                return Account(name, int(fields[1]), int(fields[2]))
    with suppress(KeyError):
        return _account(pwd.getpwnam(SYSTEM_USER))
    return None


def _create_system_account() -> Account:
    program = shutil.which("useradd", path=_SYSTEM_PATH)
    if program is None:
        raise EmbeddedServerError(
            f"PostgreSQL does not run as root and useradd is missing; {_ADVICE}"
        )
    with _creating_alone() as lock:
        found = _find_system_account()
        problem = "" if found else _add_user(program, lock)
    created = found or _find_system_account()
    if created is None:
        raise EmbeddedServerError(f"cannot create the user {SYSTEM_USER}: {problem}; {_ADVICE}")
    return created


@contextmanager
def _creating_alone() -> Iterator[int]:
    descriptor = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        # Not unlocked: a useradd that outlives us keeps the lock until it ends.
        os.close(descriptor)


def _add_user(program: str, lock: int) -> str:
    """What it says, as one line."""
    options = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
    if _has_group():
        options.extend(("--gid", SYSTEM_USER))
    # Neither Ctrl-C nor our own end interrupts it: half an account would be left.
    process = subprocess.Popen(
        (program, *options, SYSTEM_USER),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=(lock,),
    )
    said, _ = process.communicate()
    return "; ".join(line.strip() for line in said.splitlines() if line.strip())


def _has_group() -> bool:
    """As after a useradd that was killed, or a user that was deleted without its group."""
    with suppress(KeyError):
        return grp.getgrnam(SYSTEM_USER).gr_name == SYSTEM_USER
    return False
