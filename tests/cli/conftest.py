"""A database for each test here, with the definitions of examples/hello.py."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from examples import hello
from mainspring.testing import bind
from tests.support.commands import Done, clean_environment, mainspring, mainspring_each
from tests.support.processes import WorkerProcess
from tests.support.warm import ROOT

Command = Callable[..., Done]
EachCommand = Callable[..., list[Done]]
Start = Callable[..., WorkerProcess]


@pytest.fixture
def database_url(mainspring_database_url: str) -> str:
    with bind(hello.app, mainspring_database_url):
        hello.app.note_definitions()
    return mainspring_database_url


@pytest.fixture
def command(database_url: str) -> Command:
    """Runs `mainspring ...` against the database."""
    return partial(mainspring, MAINSPRING_DATABASE_URL=database_url)


@pytest.fixture
def each_command(database_url: str) -> EachCommand:
    """Runs several commands against the database, one after another."""
    return lambda *commands: mainspring_each(commands, MAINSPRING_DATABASE_URL=database_url)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `mainspring ...`; whatever still runs at the end is killed."""
    with ExitStack() as running:

        def start(*arguments: str, cwd: Path = ROOT, **environment: str) -> WorkerProcess:
            log = tmp_path / f"{len(list(tmp_path.glob('*.log')))}.log"
            process = WorkerProcess(arguments, clean_environment(**environment), log, cwd)
            running.callback(process.end)
            return process

        yield start
