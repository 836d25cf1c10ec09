"""Processes of this machine, as far as their ids tell."""

import os


def exists(pid: int) -> bool:
    """False only if there is no such process; one of another user may not be signaled."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
