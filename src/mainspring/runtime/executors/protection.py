"""What a process asks of the kernel for the sake of the processes around it; only Linux offers it.

A worker's environment holds what commands must not know: the URL of the database, the keys of
secrets. A command gets variables of its own, but it runs as the same user, and the kernel shows the
environment and the memory of a process to every process of its user, in `/proc`, unless the
process says that it is not **dumpable**. Then it writes no core dump either, and a debugger needs
the rights of root. A program that is started is dumpable again.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4

# What a Python process needs to start, and nothing that is secret.
_HARMLESS = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")


def end_with(parent_pid: int) -> None:
    """Be killed when the parent dies, which it may have done already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform == "linux" and os.getppid() != parent_pid:
        os._exit(1)


def hide_environment() -> None:
    """Keep other processes of this user from reading the environment and memory of this one."""
    _prctl(_PR_SET_DUMPABLE, 0)


def start_helper() -> None:
    """Start the process that Python keeps beside one with children, without the environment of this
    one: it is dumpable for as long as it lives. Call this before other threads need the
    environment."""
    if sys.platform == "linux":
        with _harmless_environment():
            resource_tracker.ensure_running()


@contextmanager
def _harmless_environment() -> Iterator[None]:
    kept = dict(os.environ)
    try:
        for name in kept.keys() - set(_HARMLESS):
            del os.environ[name]
        yield
    finally:
        os.environ.update(kept)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
