"""Checks the models of leases and slots with SPIN: each holds, and each mutation breaks it.

`make models` runs it, and `make chaos` with it. It needs spin and gcc (Debian: spin, gcc).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).resolve().parent.parent / "tests" / "models"
_LIVE: Final = "LIVE"
_STATES: Final = re.compile(r"^\s*([\d.e+]+) states, stored", re.MULTILINE)
_ERRORS: Final = re.compile(r"errors: (\d+)")
_CAUSE: Final = re.compile(r"^pan:1: (.*?)(?: \(at depth|$)", re.MULTILINE)
_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Check:
    """A model with the mutations that are switched on; `holds` is what must come out."""

    model: str
    flags: tuple[str, ...] = ()
    holds: bool = False

    @property
    def is_live(self) -> bool:
        return _LIVE in self.flags


CHECKS: Final = (
    Check("leases", holds=True),
    Check("leases", ("FENCE_FROM_ATTEMPTS",)),
    Check("leases", ("NO_FENCE",)),
    Check("leases", ("COMMIT_AFTER_LEASE",)),
    Check("leases", ("CLAIM_AT_THE_END",)),
    Check("leases", ("RECOVER_EARLY",)),
    Check("leases", (_LIVE,), holds=True),
    Check("leases", (_LIVE, "NO_RECOVERY")),
    Check("leases", (_LIVE, "RECOVER_EARLY")),
    Check("leases", (_LIVE, "COMMIT_AFTER_LEASE"), holds=True),
    Check("leases", (_LIVE, "COMMIT_AFTER_LEASE", "NO_ADOPTION")),
    Check("slots", holds=True),
    Check("slots", ("NO_COMPARE",)),
    Check("slots", ("NO_COMPARE", "NO_KEY")),
    Check("slots", ("COMPARE_FIRST",)),
    Check("slots", (_LIVE,), holds=True),
    Check("slots", (_LIVE, "NO_READ_AGAIN")),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a search found: no cause if the model holds."""

    cause: str | None
    states: str


def main() -> int:
    missing = [program for program in ("spin", "gcc") if shutil.which(program) is None]
    if missing:
        sys.stderr.write(f"Install {' and '.join(missing)} (Debian: apt-get install spin gcc)\n")
        return 2
    return 1 if any(list(_checked())) else 0


def _checked() -> Iterator[bool]:
    """Whether each check came out wrong."""
    for check in CHECKS:
        finding = search(check)
        is_wrong = (finding.cause is None) is not check.holds
        verdict = "holds" if finding.cause is None else f"breaks: {finding.cause}"
        mark = "WRONG" if is_wrong else "ok"
        name = " ".join((check.model, *check.flags))
        sys.stdout.write(f"{mark:5}  {name:42}  {finding.states:>10} states  {verdict}\n")
        sys.stdout.flush()
        yield is_wrong


def search(check: Check) -> Finding:
    """Search all states of a model."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"-D{flag}" for flag in check.flags]
        _run(folder, "spin", "-a", *flags, str(_FOLDER / f"{check.model}.pml"))
        mode = ["-DNFAIR=4"] if check.is_live else ["-DSAFETY"]
        _run(folder, "gcc", "-O1", "-w", "-DCOLLAPSE", *mode, "-o", "pan", "pan.c")
        arguments = ["-a", "-f"] if check.is_live else []
        printed = _run(folder, "./pan", "-m1000000", *arguments)
    return _read(printed)


def _read(printed: str) -> Finding:
    errors, states = _ERRORS.search(printed), _STATES.search(printed)
    if errors is None or states is None or "max search depth too small" in printed:
        raise RuntimeError(f"the search was not completed:\n{printed}")
    cause = _CAUSE.search(printed) if int(errors[1]) else None
    return Finding(cause[1] if cause else None, f"{float(states[1]):,.0f}")


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
