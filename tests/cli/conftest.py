"""A database for each test here, with the definitions of examples/hello.py."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from examples import hello
from mainspring.services import tokens
from mainspring.testing import bind
from tests.support.commands import Done, clean_environment, mainspring, mainspring_each
from tests.support.processes import WorkerProcess, says
from tests.support.warm import ROOT

Command = Callable[..., Done]
EachCommand = Callable[..., list[Done]]
Start = Callable[..., WorkerProcess]


@pytest.fixture
def database_url(mainspring_database_url: str) -> str:
    with bind(hello.app, mainspring_database_url):
        hello.app.register_definitions()
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


@pytest.fixture
def server_command(database_url: str, start: Start) -> Command:
    """Runs `mainspring ...` through a server, with a token of the role; knows no database."""
    known: dict[str, str] = {}

    def server_command(*words: str, role: str = "operator", stdin: str = "") -> Done:
        if not known:
            known["server"] = _serve(start, database_url)
        if role not in known:
            known[role] = _make_token(database_url, role)
        return mainspring(
            *words,
            stdin=stdin,
            MAINSPRING_SERVER=known["server"],
            MAINSPRING_TOKEN=known[role],
        )

    return server_command


@pytest.fixture
def each_server_command(server_command: Command) -> EachCommand:
    """Runs several commands through a server, which costs half of the time."""
    return lambda *commands: [server_command(*words) for words in commands]


def _serve(start: Start, database_url: str) -> str:
    """A server on a free port; its address."""
    server = start("server", "--port", "0", MAINSPRING_DATABASE_URL=database_url)
    says(server, "  server  ")
    found = re.search(r"http://[0-9.]+:[0-9]+", server.log)
    assert found is not None, server.log
    return found[0]


def _make_token(database_url: str, role: str) -> str:
    tenant_id = None if role == "operator" else "default"
    with bind(hello.app, database_url):
        making = tokens.create(hello.app.database, f"the {role}", role, tenant_id=tenant_id)
        return hello.app.blocking(making).text
