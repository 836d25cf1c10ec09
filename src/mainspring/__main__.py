"""`mainspring`, which is also `python -m mainspring`: the command line."""

import atexit
import gc
import os
import sys
import threading


def main() -> None:
    """Run a command; an interrupt while its modules are imported ends it quietly, as one later."""
    # A short command ends before there is garbage worth collecting, and collecting while modules
    # are imported takes a tenth of its time. What runs for long enables it again.
    gc.disable()
    try:
        from mainspring.cli.main import main as run  # noqa: PLC0415 - takes a while

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except SystemExit as ending:
        _leave(ending)
        raise


def _leave(ending: SystemExit) -> None:
    """End the process now if nothing else runs in it: Python would spend a sixth of the time of a
    short command on freeing, object by object, the memory that the process gives back anyway."""
    if threading.active_count() > 1 or not isinstance(ending.code, int | None):
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # Nobody reads the output any more; Python reports that in its own way.
        return
    os._exit(ending.code or 0)


if __name__ == "__main__":
    main()
