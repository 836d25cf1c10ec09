"""A machine on which no process has created the system user yet: an /etc of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mainspring.db.embedded import SYSTEM_USER
from tests.db.embedded.processes import AS_ROOT, PATH

_ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" /etc
[ ! -e "$1.useradd" ] || mount --bind "$1.useradd" "$(command -v useradd)"
shift
exec "$@"
"""
_ACCOUNT_FILES = ("passwd", "shadow", "group", "gshadow")


@dataclass(frozen=True)
class Machine:
    """Every process started on it has its own mount namespace and shares the one /etc."""

    etc: Path

    def command(self, *command: str | Path) -> tuple[str | Path, ...]:
        return ("unshare", "--mount", "sh", "-c", _ENTER, "machine", self.etc, *command)

    def start(self, script: str, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(sys.executable, "-c", script, *arguments),
            env=os.environ | {"PYTHONPATH": PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, *arguments: str | Path) -> tuple[str, str]:
        """What it prints and what it complains of."""
        return self.start(script, *arguments).communicate(timeout=60)

    def uid(self, name: str = SYSTEM_USER) -> int | None:
        """As /etc/passwd has it; None for a user that is not there."""
        lines = (self.etc / "passwd").read_text().splitlines()
        entries = (line.split(":") for line in lines)
        return next((int(entry[2]) for entry in entries if entry[0] == name), None)

    def replace_useradd(self, script: str, *, mode: int = 0o755) -> None:
        """Let the script stand where useradd was; it finds the real one beside itself."""
        real = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
        assert real is not None
        shutil.copy(real, f"{self.etc}.real-useradd")
        target = Path(f"{self.etc}.useradd")
        target.write_text(script)
        target.chmod(mode)

    def forget(self, name: str, files: Sequence[str] = _ACCOUNT_FILES) -> None:
        for file in files:
            lines = (self.etc / file).read_text().splitlines(keepends=True)
            kept = [line for line in lines if not line.startswith(f"{name}:")]
            (self.etc / file).write_text("".join(kept))


def fresh_machine(folder: Path) -> Machine:
    """Skips where mount namespaces are not to be had."""
    if not AS_ROOT:
        pytest.skip("only root creates a system user")
    done = subprocess.run(("unshare", "--mount", "true"), check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no mount namespace: {done.stderr.decode().strip()}")
    shutil.copytree("/etc", folder / "etc", symlinks=True)
    machine = Machine(folder / "etc")
    machine.forget(SYSTEM_USER)
    return machine
