"""Programs that a test writes, and an app whose workers may run them."""

import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.settings import load
from tests.support.command_jobs import Program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "programs"
    made.mkdir()
    return made.resolve()


@pytest.fixture
def program(folder: Path) -> Program:
    """Writes an executable Python script into the folder of allowed programs."""

    def write(name: str, source: str) -> Path:
        path = folder / name
        path.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{source}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture
async def app(database_url: str, folder: Path) -> AsyncIterator[Mainspring]:
    settings = load(database_url=database_url, command_directories=str(folder))
    async with Mainspring(settings=settings) as app:
        yield app
