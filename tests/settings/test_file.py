"""The settings file: whatever is in its place is read or refused, and a change harms nothing."""

import math
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mainspring.domain.errors import SettingsError
from mainspring.settings.file import MOST_BYTES, change, read

COMMENTED = """\
# Ours.

port = 8080     # behind the proxy

# Kept long.
lease_seconds = 30
"""


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAINSPRING_CONFIG", raising=False)
    return Path("mainspring.toml")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "data",
    [
        b"port = 1\nhost = 'b'\n",
        b"port = 1\r\nhost = 'b'\r\n",
        b"\xef\xbb\xbfport = 1\r\nhost = 'b'",
        b"port = 1\nhost = 'b'\n#" + b"x" * (MOST_BYTES - 21),
    ],
)
def test_marks_and_line_ends_of_any_editor_are_read(file, data):
    file.write_bytes(data)

    assert read().values == {"port": 1, "host": "b"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"#" * (MOST_BYTES + 1), " is larger than 65,536 bytes"),
        (b"port = 1\n\xff\xfe", ", line 2: this is not UTF-8 text"),
        ("port = 1".encode("utf-16"), ", line 1: this is not UTF-8 text"),
        (b"port = \x00", ", line 1: this is not valid TOML"),
        (b"port", ", line 1: this is not valid TOML"),
        (b"x = " + b"[" * 60_000, "nested too deeply"),
    ],
)
def test_what_is_no_settings_file_is_one_sentence(file, data, said):
    file.write_bytes(data)

    with pytest.raises(SettingsError, match=f"^mainspring.toml.*{said}") as caught:
        read()

    assert "\n" not in str(caught.value)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [(make_folder, "is not a file"), (make_pipe, "is not a file"), (make_loop, "Too many levels")],
)
def test_what_is_no_file_is_refused_at_once(file, make, said):
    make(file)

    for act in (read, lambda: change(file, "port", 1)):
        with pytest.raises(SettingsError, match=said):
            act()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so it is somebody else meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read_says_so(file, tmp_path, monkeypatch):
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.chdir(folder)
        file.touch(mode=0)
        with as_nobody(), pytest.raises(SettingsError, match="cannot be read: Permission denied"):
            read()
        monkeypatch.chdir(tmp_path)


def test_a_directory_that_may_not_be_entered_has_no_file_unless_one_is_named(
    file, tmp_path, monkeypatch
):
    file.write_text("port = 1")
    tmp_path.chmod(0)
    try:
        with as_nobody():
            assert read().values == {}
            monkeypatch.setenv("MAINSPRING_CONFIG", str(file))
            with pytest.raises(SettingsError, match="cannot be read: Permission denied"):
                read()
    finally:
        tmp_path.chmod(0o700)


def test_a_change_keeps_comments_and_order(file):
    file.write_text(COMMENTED)

    assert change(file, "port", 9000)
    assert change(file, "host", "::1")

    assert file.read_text() == COMMENTED.replace("8080", "9000") + 'host = "::1"\n'


def test_a_value_can_be_removed_once(file):
    file.write_text(COMMENTED)

    assert change(file, "lease_seconds", None)
    assert not change(file, "lease_seconds", None)

    assert read().values == {"port": 8080}
    assert "# Ours." in file.read_text()


def test_a_change_keeps_the_mark_and_the_line_ends(file):
    file.write_bytes(b"\xef\xbb\xbfport = 1\r\n")

    change(file, "host", "a")

    assert file.read_bytes() == b'\xef\xbb\xbfport = 1\r\nhost = "a"\r\n'


def test_a_value_goes_before_a_table(file):
    file.write_text("port = 1\n\n[other]\nx = 1\n")

    change(file, "host", "a")

    assert read().values == {"port": 1, "host": "a", "other": {"x": 1}}


@pytest.mark.parametrize("value", ['a"b\\c', "[]", "'''", "ä\u2028", "#", "", "a\nb"])
def test_any_text_comes_back_as_it_was(file, value):
    change(file, "host", value)

    assert read().values == {"host": value}


def test_a_new_file_is_its_owners_alone_and_an_old_one_stays_as_it_was(file):
    change(file, "port", 1)
    assert file.stat().st_mode & 0o777 == 0o600

    file.chmod(0o640)
    change(file, "port", 2)
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_change_leaves_no_other_file(file, tmp_path):
    change(file, "port", 1)

    assert contents(tmp_path) == {"mainspring.toml": b"port = 1\n"}


def test_a_reader_has_the_old_file_or_the_new_one(file):
    change(file, "port", 1)
    with file.open() as reader:
        change(file, "port", 2)

        assert reader.read() == "port = 1\n"
    assert file.read_text() == "port = 2\n"


def test_what_a_link_leads_to_is_changed(file, tmp_path):
    (tmp_path / "real.toml").write_text("port = 1\n")
    file.symlink_to("real.toml")

    change(file, "port", 2)

    assert file.is_symlink()
    assert (tmp_path / "real.toml").read_text() == "port = 2\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_stays_its_owners(file):
    file.write_text("port = 1\n")
    os.chown(file, 12345, 12346)

    change(file, "port", 2)

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 12346)


@pytest.mark.parametrize("data", [b"port = = 1", b"\xff", b"x = " + b"[" * 300 + b"]" * 300])
def test_a_file_that_cannot_be_changed_stays_as_it_was(file, tmp_path, data):
    file.write_bytes(data)

    with pytest.raises(SettingsError, match=r"mainspring\.toml"):
        change(file, "port", 1)

    assert contents(tmp_path) == {"mainspring.toml": data}


def test_a_disk_that_is_full_leaves_the_old_file_and_no_other(file, tmp_path):
    file.write_text("port = 1\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(SettingsError, match=r"mainspring\.toml cannot be written: File too"):
            change(file, "port", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert contents(tmp_path) == {"mainspring.toml": b"port = 1\n"}


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere/x\.toml cannot be written: No such file"):
        change(Path("nowhere/x.toml"), "port", 1)


def test_a_change_that_would_be_read_otherwise_is_not_written(file):
    file.write_text("lease_seconds = 1\n")

    with pytest.raises(SettingsError, match="cannot be edited safely"):
        change(file, "lease_seconds", math.nan)

    assert file.read_text() == "lease_seconds = 1\n"
