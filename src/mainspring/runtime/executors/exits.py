"""How a process ended, in words."""

import signal


def describe_exit(code: int | None) -> str:
    """What follows "the process": `was killed by SIGSEGV`, `exited with code 3`."""
    if code is None:
        return "stopped answering"
    if code >= 0:
        return f"exited with code {code}"
    if -code == signal.SIGKILL:
        return "was killed by SIGKILL, perhaps because memory ran out"
    return f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
