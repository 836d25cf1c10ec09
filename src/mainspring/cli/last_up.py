"""The database of the last `mainspring up`, so that commands can say that they use another.

Without options a command finds the server of a running `mainspring up`, and waits for one that is
starting. Once that has ended, the same command finds the embedded database in its default place,
which may be another one.
"""

import os
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mainspring.cli import output
from mainspring.cli.profiles import profiles_path
from mainspring.db import processes
from mainspring.domain.errors.client import ServerUnreachable

if TYPE_CHECKING:
    from mainspring.db.database import Database
    from mainspring.settings import Settings

PATIENCE_SECONDS = 20.0
_LOOK_EVERY = 0.1


class LastUp(NamedTuple):
    """The process, and the options by which its database is found."""

    pid: int
    data_dir: str | None
    has_started: bool = True

    @property
    def is_starting(self) -> bool:
        return not self.has_started and processes.exists(self.pid)

    @property
    def options(self) -> str:
        return "--database-url" if self.data_dir is None else f"--data-dir {self._quoted}"

    @property
    def _quoted(self) -> str:
        return shlex.quote(self.data_dir or "")


def keep_starting(settings: "Settings") -> None:
    """Note that this process is starting, and which database it is going to use."""
    _keep(settings, has_started=False)


def keep(database: "Database") -> None:
    """Note which database this process uses; after its profile, which commands look for then."""
    _keep(database.settings, has_started=True)


def await_start() -> bool:
    """Wait for a `mainspring up` that is starting; False if none is."""
    found = _read()
    if found is None or not found.is_starting:
        return False
    output.errors.print(f"waiting for `mainspring up` (process {found.pid}), which is starting")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while found is not None and found.is_starting:
        if time.monotonic() > deadline:
            raise ServerUnreachable(
                f"`mainspring up` (process {found.pid}) is still starting; run the command again "
                f"once it has started, or pass {found.options} to use its database directly"
            )
        time.sleep(_LOOK_EVERY)
        found = _read()
    return True


def is_used_by_running(data_dir: Path) -> bool:
    """Whether a `mainspring up` that runs uses the embedded database of this directory."""
    last = _read()
    is_same = last is not None and last.data_dir == _absolute(data_dir)
    return last is not None and is_same and processes.exists(last.pid)


def say_which(database: "Database") -> None:
    """Name an embedded database, unless it is the one of a `mainspring up` that runs; and the one
    of another `mainspring up` to who has named none."""
    if not database.is_embedded or is_used_by_running(database.data_dir):
        return
    here, last = _absolute(database.data_dir), _read()
    said = f"note: this is the embedded database in {here}"
    if database.settings.data_dir is None and last is not None and last.data_dir != here:
        which = "running" if processes.exists(last.pid) else "last"
        said += f"; the {which} `mainspring up` used another: pass {last.options}"
    output.errors.print(said)


def _keep(settings: "Settings", *, has_started: bool) -> None:
    """A command can do without."""
    place = None if settings.database_url is not None else _absolute(_data_dir(settings))
    path = _path()
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.write_bytes(orjson.dumps([os.getpid(), place, has_started]))
        unfinished.replace(path)


def _data_dir(settings: "Settings") -> Path:
    from mainspring.db.embedded.folders import default_data_dir

    return settings.data_dir or default_data_dir()


def _absolute(data_dir: Path) -> str:
    return str(data_dir.expanduser().absolute())


def _path() -> Path:
    return profiles_path().with_name("last_up.json")


def _read() -> LastUp | None:
    with suppress(OSError, ValueError, TypeError):
        return LastUp(*orjson.loads(_path().read_bytes()))
    return None
