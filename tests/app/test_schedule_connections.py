"""Schedules from plain code, and in the caller's own transaction, whatever the driver."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.app.schedules import Schedules
from mainspring.domain.errors import InputError, ScheduleNotFound, UnsupportedConnection
from tests.support.callers import (
    ASYNC,
    BLOCKING,
    blocking_caller,
    of_async_psycopg,
    of_psycopg,
    transaction_of,
)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NEXT_YEAR = datetime.now(UTC).replace(microsecond=0) + 365 * DAY
LAST_NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - DAY


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with Mainspring(database_url) as app:

        @app.job
        def send(to: str = "") -> None: ...

        yield app


# From plain code


def test_every_use_has_a_blocking_twin(app):
    schedules = app.schedules
    made = schedules.create("x", "send", cron="0 12 * * *")

    assert schedules.get("x") == made
    assert schedules.update("x", jitter=MINUTE).spec.jitter == MINUTE
    assert not schedules.disable("x", "no").spec.enabled
    assert schedules.enable("x").spec.enabled
    assert schedules.pause("x", NEXT_YEAR).spec.paused_until == NEXT_YEAR
    assert schedules.resume("x").spec.paused_until is None
    assert len(schedules.preview("x", 3)) == 3
    assert schedules.backfill("x", LAST_NOON, LAST_NOON) == [(LAST_NOON, 1)]
    assert schedules.trigger("x").outcome == "skipped"
    assert len(schedules.history("x")) == 2
    assert len(schedules.list()) == 1
    schedules.delete("x")
    assert schedules.list() == []


def test_no_use_is_without_a_twin():
    uses = {name for name, use in vars(Schedules).items() if asyncio.iscoroutinefunction(use)}
    public = {name for name in uses if not name.startswith("_")} - {"aprepare"}

    assert {name.removeprefix("a") for name in public} <= vars(Schedules).keys()
    assert Schedules.create.__name__ == "create"


async def test_a_blocking_twin_does_not_block_an_event_loop(app):
    with pytest.raises(InputError, match="await the async method"):
        app.schedules.list()


# In the caller's own transaction


def stored(connection: psycopg.Connection) -> list[Any]:
    """What everyone else sees: each schedule, its interval, and its jobs."""
    query = """select name, every, count(job_id)::integer from mainspring.schedules
                 left join mainspring.jobs using (schedule_id)
                group by schedule_id, name, every"""
    return connection.execute(query).fetchall()


def make(app: Mainspring, own: Any) -> None:
    made = app.schedules.create("x", "send", cron="@daily", payload={"to": "☃"}, connection=own)
    assert (made.spec.cron, made.spec.payload) == ("@daily", {"to": "☃"})
    assert app.schedules.update("x", every=HOUR, connection=own).spec.every == HOUR
    assert app.schedules.trigger("x", connection=own).outcome == "enqueued"


async def amake(app: Mainspring, own: Any) -> None:
    payload = {"to": "☃"}
    made = await app.schedules.acreate("x", "send", cron="@daily", payload=payload, connection=own)
    assert (made.spec.cron, made.spec.payload) == ("@daily", payload)
    assert (await app.schedules.aupdate("x", every=HOUR, connection=own)).spec.every == HOUR
    assert (await app.schedules.atrigger("x", connection=own)).outcome == "enqueued"


@pytest.mark.parametrize("kind", BLOCKING)
def test_a_blocking_connection_decides_whether_a_schedule_was_made(
    app, database_url, connection, kind
):
    with blocking_caller(BLOCKING[kind], database_url) as caller:
        make(app, caller.connection)
        assert stored(connection) == []
        caller.rollback()
        assert stored(connection) == []
        make(app, caller.connection)
        caller.commit()
        assert stored(connection) == [("x", HOUR, 1)]
        app.schedules.delete("x", connection=caller.connection)
        assert stored(connection) == [("x", HOUR, 1)]
        caller.commit()

    assert stored(connection) == []


@pytest.mark.parametrize("kind", ASYNC)
def test_an_async_connection_decides_whether_a_schedule_was_made(
    app, database_url, connection, kind
):
    async def story() -> None:
        async with ASYNC[kind](database_url) as own:
            owner = await transaction_of(own)
            await amake(app, own)
            assert stored(connection) == []
            await owner.rollback()
            assert stored(connection) == []
            owner = await transaction_of(own)
            await amake(app, own)
            await owner.commit()
            assert stored(connection) == [("x", HOUR, 1)]
        await app.aclose()

    asyncio.run(story())


def test_a_schedule_that_the_transaction_does_not_see_does_not_exist(app, database_url):
    with of_psycopg(database_url) as own, pytest.raises(ScheduleNotFound):
        app.schedules.delete("x", connection=own)


async def test_a_connection_of_the_wrong_kind_is_refused(app, database_url):
    with of_psycopg(database_url) as own, pytest.raises(UnsupportedConnection, match="blocking"):
        await app.schedules.adelete("x", connection=own)
    await app.database.close_loop()


def test_an_async_connection_is_refused_by_a_blocking_use(app, database_url):
    async def connect() -> Any:
        async with of_async_psycopg(database_url) as own:
            return own

    own = asyncio.run(connect())
    with pytest.raises(UnsupportedConnection, match="is an async connection"):
        app.schedules.delete("x", connection=own)
