"""One database for each module here, with the definitions of examples/hello.py."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from examples import hello
from mainspring.db.templates import fresh_database
from mainspring.testing import bind
from tests.support.commands import Done, mainspring, mainspring_each
from tests.support.emptying import empty

Command = Callable[..., Done]
EachCommand = Callable[..., list[Done]]


@pytest.fixture(scope="module")
def shared_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def database_url(shared_url: str) -> str:
    empty(shared_url)
    with bind(hello.app, shared_url):
        hello.app.note_definitions()
    return shared_url


@pytest.fixture
def command(database_url: str) -> Command:
    """Runs `mainspring ...` against the database."""
    return partial(mainspring, MAINSPRING_DATABASE_URL=database_url)


@pytest.fixture
def each_command(database_url: str) -> EachCommand:
    """Runs several commands against the database, in one process."""
    return lambda *commands: mainspring_each(commands, MAINSPRING_DATABASE_URL=database_url)
