"""Events from plain and async code, and in the caller's own transaction, whatever the driver."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.app.events import Events
from mainspring.app.triggers import Triggers
from mainspring.domain.errors import InputError, InvalidEvent, UnsupportedConnection
from tests.support.callers import ASYNC, BLOCKING, blocking_caller, of_psycopg, transaction_of

CONTEXT = {"folder": "50% of :all, a 'quote' and a ☃", "size": 3, "list": [1, None]}


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with Mainspring(database_url) as app:
        yield app


def contexts(connection: psycopg.Connection) -> list[Any]:
    """What everyone else sees."""
    query = "select context from mainspring.event_status order by event_id"
    return [context for (context,) in connection.execute(query).fetchall()]


@pytest.mark.parametrize("kind", BLOCKING)
def test_a_blocking_connection_decides_whether_an_event_happened(
    app, database_url, connection, kind
):
    with blocking_caller(BLOCKING[kind], database_url) as caller:
        app.emit("provider.changed", CONTEXT, connection=caller.connection)
        assert contexts(connection) == []
        caller.rollback()
        assert contexts(connection) == []
        event_id = app.emit("provider.changed", CONTEXT, connection=caller.connection)
        caller.commit()

    assert contexts(connection) == [CONTEXT]
    assert app.events.get(event_id).name == "provider.changed"


@pytest.mark.parametrize("kind", ASYNC)
def test_an_async_connection_decides_whether_an_event_happened(app, database_url, connection, kind):
    async def story() -> None:
        async with ASYNC[kind](database_url) as own:
            owner = await transaction_of(own)
            await app.aemit("provider.changed", CONTEXT, connection=own)
            await owner.rollback()
            assert contexts(connection) == []
            owner = await transaction_of(own)
            await app.aemit("provider.changed", CONTEXT, connection=own)
            assert contexts(connection) == []
            await owner.commit()
        await app.aclose()

    asyncio.run(story())
    assert contexts(connection) == [CONTEXT]


def test_a_refused_event_leaves_the_callers_transaction_alone(app, database_url, connection):
    with of_psycopg(database_url) as own:
        with pytest.raises(InvalidEvent):
            app.emit("a b", connection=own)
        app.emit("a", connection=own)
        own.commit()

    assert contexts(connection) == [{}]


async def test_a_connection_of_the_wrong_kind_is_refused(app, database_url):
    with of_psycopg(database_url) as own, pytest.raises(UnsupportedConnection, match="blocking"):
        await app.aemit("a", connection=own)
    await app.database.close_loop()


@pytest.mark.parametrize("namespace", [Events, Triggers])
def test_no_use_is_without_a_twin(namespace):
    uses = {name for name, use in vars(namespace).items() if asyncio.iscoroutinefunction(use)}
    public = {name for name in uses if not name.startswith("_")}

    assert {name.removeprefix("a") for name in public} <= vars(namespace).keys()


async def test_a_blocking_twin_does_not_block_an_event_loop(app):
    with pytest.raises(InputError, match="await the async method"):
        app.triggers.list()
