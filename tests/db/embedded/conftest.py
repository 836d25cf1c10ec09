"""Real servers in real directories, used and killed by real processes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mainspring.db import embedded
from tests.db.embedded.folders import open_folder
from tests.db.embedded.processes import HOLD, Holder, run_python


@pytest.fixture
def folder() -> Iterator[Path]:
    """Unlike tmp_path it is open to the account that runs PostgreSQL for root."""
    yield from open_folder()


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    """Holds a database whose server is stopped, and every test leaves it so."""
    for folder in open_folder():
        embedded.release(embedded.acquire(folder / "data"))
        yield folder / "data"


@pytest.fixture
def own_data_dir(folder: Path) -> Path:
    """Where a server has made its database, for a test that changes who owns it."""
    embedded.release(embedded.acquire(folder / "data"))
    return folder / "data"


@pytest.fixture
def hold() -> Iterator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def start(data_dir: Path, script: str = HOLD) -> Holder:
        holders.append(Holder(run_python(script, data_dir)))
        return holders[-1]

    yield start
    for holder in holders:
        holder.leave()
