"""Processes that a command leaves behind, found by what they were started with.

A command gets a session of its own, so that all of it can be signaled at once. What leaves that
session still has the environment it began with, which names the attempt, and comes to this process
when its parent ends, because this process asked for orphans. Only Linux offers all of that;
elsewhere the session is what can be ended.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ATTEMPT = "MAINSPRING_ATTEMPT_ID"
WORKER = "MAINSPRING_WORKER"

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of whatever descendant loses its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_group(pid: int, number: signal.Signals) -> bool:
    """Signal all of a session that a command leads; whether there was anyone."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # A program that runs as someone else has to end by itself.
    return True


def children() -> set[int]:
    """The children of this process, adopted ones included; none where the system does not say."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children", "rb") as listed:  # noqa: PTH123 - for each command
            return set(map(int, listed.read().split()))
    except OSError:
        return set()


def end_strays(attempt_id: str) -> int:
    """Kill what has left the session of an attempt; how many there were."""
    return _kill(pid for pid in _pids() if _value(pid, ATTEMPT) == attempt_id)


def end_left_over(identities: Collection[str]) -> int:
    """Kill the commands of workers that are dead; how many processes there were."""
    return _kill(pid for pid in _pids() if _value(pid, WORKER) in identities)


def workers_of_commands() -> set[str]:
    """The workers whose commands run on this host, dead or alive."""
    return {worker for pid in _pids() if (worker := _value(pid, WORKER))}


def reap() -> None:
    """Take leave of orphans that have ended; those that someone here waits for are left alone."""
    for pid in _orphans():
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _kill(pids: Iterator[int]) -> int:
    killed = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        except (ProcessLookupError, PermissionError):
            continue
    return killed


def _pids() -> Iterator[int]:
    if _PROC.is_dir():
        me = os.getpid()
        for entry in _PROC.iterdir():
            if entry.name.isdigit() and int(entry.name) != me:
                yield int(entry.name)


def _orphans() -> Iterator[int]:
    """Ended children of ours whose environment is gone with them: zombies nobody asked for."""
    for pid in _pids():
        try:
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, parent, session = fields[0], int(fields[1]), int(fields[3])
        # The leader of a session is the command itself, whose end is waited for.
        if state == "Z" and parent == os.getpid() and session not in (pid, os.getsid(0)):
            yield pid


def _value(pid: int, name: str) -> str | None:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    wanted = f"{name}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode(errors="replace")
    return None
