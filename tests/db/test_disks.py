"""The disk of a folder."""

from pathlib import Path

from mainspring.db.disks import disk_of


def test_a_disk_has_some_room(tmp_path: Path):
    found = disk_of(tmp_path)

    assert found is not None
    assert 0 <= found.free <= found.total
    assert found.folder == str(tmp_path)


def test_a_folder_that_is_not_there_has_none(tmp_path: Path):
    assert disk_of(tmp_path / "elsewhere") is None
