"""A program that stops a server whose users were all killed, and ends when nobody uses it.

A process leaves its server when it ends (`shares.release`), but not if a signal ends it: Python
then runs no exit handlers. uvicorn, also below gunicorn, ends itself by the SIGTERM that it was
sent. So a process that joins a server leaves this program beside it, unless it is there, and the
program asks once a second whether anyone has a share. It imports next to nothing until it has
something to stop.
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

_LOOK_EVERY = 1.0


def leave_beside(folder: Path, descriptor: int) -> None:
    """Start the program unless it holds the file; it is nobody's child, and a server can do without
    it. Called with the data directory's lock, so that it does not end meanwhile."""
    if not sys.executable or not _try_lock(descriptor):
        return
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    subprocess.run(
        (sys.executable, "-P", __file__, folder),
        check=False,
        cwd="/",
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    # The data directory may be removed.
    with suppress(FileNotFoundError), (folder / "reaper").open("r+") as mine:
        if _try_lock(mine.fileno()) and not os.fork():
            while _is_needed(folder, mine):
                time.sleep(_LOOK_EVERY)


def _is_needed(folder: Path, mine: IO[str]) -> bool:
    """Whether anyone has a share; stops the server if nobody has."""
    with (folder / "lock").open("r+") as lock, (folder / "users").open("r+") as users:
        # Not waited for: who starts or stops the server may take a while.
        if not (_try_lock(lock.fileno()) and _try_lock(users.fileno())):
            return True
        if not (folder / "postgres" / "postmaster.pid").exists():
            # Before the lock is given up: who joins then finds that we are not there.
            mine.close()
            return False
    from mainspring.db.embedded.shares import stop_unused  # noqa: PLC0415 - slow to import

    stop_unused(folder)
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    main()
