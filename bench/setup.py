"""Makes .venv-bench: Mainspring and its rivals in an environment of their own.

Runs under any Python the project supports. Oban needs 3.12, so a newer Python is taken where one
is found; without one Oban stays out and the benchmark says so. Nothing happens when nothing
changed since the last time.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_HOME: Final = _ROOT / ".venv-bench"
_PYTHON: Final = _HOME / "bin" / "python"
_STAMP: Final = _HOME / ".installed"
_REQUIREMENTS: Final = _ROOT / "bench" / "requirements.txt"
_SOURCES: Final = (_REQUIREMENTS, _ROOT / "pyproject.toml")
_WANTED: Final = ("3.12", "3.13")


def main() -> None:
    interpreter = next(_newer(), sys.executable)
    stamp = _stamp(interpreter)
    if _PYTHON.exists() and _STAMP.exists() and _STAMP.read_text() == stamp:
        return
    print(f"Installing Mainspring and its rivals into {_HOME.name}; this takes a minute or two")
    _create(interpreter)
    _install()
    _STAMP.write_text(stamp)


def _newer() -> Iterator[str]:
    """Interpreters that every rival runs on, the best first."""
    if sys.version_info[:2] >= (3, 12):
        yield sys.executable
    for version in _WANTED:
        for candidate in _candidates(version):
            if _is_version(candidate, version):
                yield candidate


def _candidates(version: str) -> Iterator[str]:
    if found := shutil.which(f"python{version}"):
        yield found
    versions = Path.home() / ".pyenv" / "versions"
    yield from map(str, sorted(versions.glob(f"{version}.*/bin/python"), reverse=True))


def _is_version(interpreter: str, version: str) -> bool:
    # A version manager puts a name on the path even for a version that is not active.
    check = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([interpreter, "-c", check], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def _stamp(interpreter: str) -> str:
    digest = hashlib.sha256(f"{_ROOT} {interpreter}".encode())
    for source in _SOURCES:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _create(interpreter: str) -> None:
    subprocess.run([interpreter, "-m", "venv", "--clear", str(_HOME)], check=True)


def _install() -> None:
    pip = [str(_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = ["--editable", f"{_ROOT}[embedded]", "--requirement", str(_REQUIREMENTS)]
    subprocess.run([*pip, *wanted], check=True)


if __name__ == "__main__":
    main()
