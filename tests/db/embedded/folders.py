"""Folders that the account which runs PostgreSQL for root can reach, and what is put in them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict
from urllib.parse import parse_qs, urlsplit

from tests.support.waiting import wait_until


class Owner(TypedDict):
    user: int
    group: int


def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="embedded-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    # A killed process's child may still be writing there. A server that a failed test left
    # running ends by itself when its pid file is gone.
    wait_until(lambda: _is_removed(folder), 20, f"{folder} is removed")


def _is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@contextmanager
def renamed(data_dir: Path, target: Path) -> Iterator[Path]:
    try:
        yield data_dir.rename(target)
    finally:
        target.rename(data_dir)


def socket_dir(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def owner_of(path: Path) -> Owner:
    found = path.stat()
    return {"user": found.st_uid, "group": found.st_gid}


def make_cluster(data_dir: Path, owner: Owner) -> Path:
    cluster = data_dir / "postgres"
    cluster.mkdir()
    os.chown(cluster, owner["user"], owner["group"])
    return cluster
