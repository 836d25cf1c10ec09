"""The database of the last `mainspring up`, so that commands can say that they use another.

Without options a command finds the server of a running `mainspring up`. Once that has ended, the
same command finds the embedded database in its default place, which may be another one.
"""

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mainspring.cli import output
from mainspring.cli.profiles import profiles_path
from mainspring.db import processes

if TYPE_CHECKING:
    from mainspring.db.database import Database


class LastUp(NamedTuple):
    """The process, and the options by which its database is found."""

    pid: int
    data_dir: str | None

    @property
    def options(self) -> str:
        return "--database-url" if self.data_dir is None else f"--data-dir {self._quoted}"

    @property
    def _quoted(self) -> str:
        return shlex.quote(self.data_dir or "")


def keep(database: "Database") -> None:
    """Note which database this process uses; a command can do without."""
    place = str(database.data_dir.absolute()) if database.is_embedded else None
    with suppress(OSError):
        _path().write_bytes(orjson.dumps([os.getpid(), place]))


def say_which(database: "Database") -> None:
    """Name an embedded database, unless it is the one of a `mainspring up` that runs."""
    if not database.is_embedded:
        return
    here, last = str(database.data_dir.absolute()), _read()
    is_last = last is not None and last.data_dir == here
    if last is not None and is_last and processes.exists(last.pid):
        return
    said = f"note: this is the embedded database in {here}"
    if last is not None and not is_last:
        which = "running" if processes.exists(last.pid) else "last"
        said += f"; the {which} `mainspring up` used another: pass {last.options}"
    output.errors.print(said)


def _path() -> Path:
    return profiles_path().with_name("last_up.json")


def _read() -> LastUp | None:
    with suppress(OSError, ValueError, TypeError):
        return LastUp(*orjson.loads(_path().read_bytes()))
    return None
