"""Data directories and socket folders of any name, and the default one."""

import shutil
from pathlib import Path

import psycopg
import pytest

from mainspring.db import embedded
from mainspring.domain.errors.database import EmbeddedServerError
from tests.db.embedded.folders import renamed, socket_dir
from tests.db.embedded.processes import AS_ROOT, needs_root, run_as_ordinary_user

LONG = "x" * 100


@pytest.mark.parametrize("name", [LONG, "a,b", 'it\'s $HOME "quoted"'])
def test_any_path_will_do(folder, data_dir, name, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    with renamed(data_dir, folder / name) as odd, embedded.running(odd) as server:
        psycopg.connect(server.url).close()
        assert socket_dir(server.url).stat().st_mode & 0o777 == 0o700
    assert not socket_dir(server.url).exists()


def test_a_socket_folder_elsewhere_is_found_from_another_environment(
    folder, data_dir, hold, monkeypatch
):
    with renamed(data_dir, folder / LONG) as deep:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        holder = hold(deep)
        pid, url = holder.server()
        monkeypatch.delenv("XDG_RUNTIME_DIR")

        with embedded.running(deep) as server:
            assert (server.pid, server.url) == (pid, url)
        holder.leave()


@needs_root
def test_a_socket_folder_made_by_someone_else_is_refused(folder, data_dir, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    with renamed(data_dir, folder / LONG) as deep:
        with embedded.running(deep) as server:
            elsewhere = socket_dir(server.url)
        elsewhere.mkdir(mode=0o777)
        shutil.chown(elsewhere, "nobody")

        with pytest.raises(EmbeddedServerError, match="was created by another user"):
            embedded.acquire(deep)


def test_the_default_folder_follows_the_user(monkeypatch, folder):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    expected = Path("/var/lib") if AS_ROOT else folder / ".local/share"

    assert embedded.default_data_dir() == expected / "mainspring"


def test_the_default_folder_of_an_ordinary_user_honours_xdg(folder):
    script = (
        "import os, sys; os.environ['XDG_DATA_HOME'] = sys.argv[1]\n"
        "from mainspring.db import embedded; print(embedded.default_data_dir())"
    )

    assert run_as_ordinary_user(script, folder).stdout.strip() == str(folder / "mainspring")
