"""Statements whose columns an upgrade changes while programs of the release before run."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import psycopg
import pytest

from mainspring.db import connect
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.db.statements import has_open_columns
from mainspring.db.unprepared import is_outdated

ALL = "select * from public.growing"
# As often as it takes until a statement is prepared.
OFTEN = 10


@pytest.fixture
def growing(connection: psycopg.Connection) -> psycopg.Connection:
    connection.execute("create view public.growing as select 1 as one")
    return connection


def grow(connection: psycopg.Connection) -> None:
    connection.execute("create or replace view public.growing as select 1 as one, 2 as two")


@pytest.fixture
async def hot(database_url: str) -> AsyncIterator[ReconnectingConnection]:
    async with aclosing(_Closing(database_url)) as closing:
        yield closing.connection


class _Closing:
    def __init__(self, url: str) -> None:
        self.connection = ReconnectingConnection(url, name="hot", pins_plans=True)

    async def aclose(self) -> None:
        await self.connection.close()


async def rows(connection: psycopg.AsyncConnection) -> list[tuple[object, ...]]:
    return await (await connection.execute(ALL)).fetchall()


async def test_a_connection_of_a_pool_reads_new_columns_inside_a_transaction(database_url, growing):
    async with await connect.connect(database_url, name="pool") as own:
        for _ in range(OFTEN):
            await own.execute(ALL)
        async with own.transaction():
            grow(growing)

            assert await rows(own) == [(1, 2)]


def test_a_blocking_connection_does_too(database_url, growing):
    with connect.connect_sync(database_url) as own:
        for _ in range(OFTEN):
            own.execute(ALL)
        with own.transaction():
            grow(growing)

            assert own.execute(ALL).fetchall() == [(1, 2)]


async def test_a_statement_that_names_its_columns_is_still_prepared(database_url, growing):
    async with await connect.connect(database_url, name="pool") as own:
        for _ in range(OFTEN):
            await own.execute("select one from public.growing")
        cursor = await own.execute("select count(*) from pg_prepared_statements")

        assert await cursor.fetchone() == (1,)


async def test_a_hot_connection_is_made_anew_and_sends_it_again(hot, growing):
    for _ in range(OFTEN):
        assert await hot.run(rows) == [(1,)]
    grow(growing)

    assert await hot.run(rows) == [(1, 2)]


async def test_what_is_tried_once_fails_once(hot, growing):
    await hot.try_once(rows)
    await hot.try_once(rows)
    grow(growing)

    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        await hot.try_once(rows)

    assert is_outdated(refused.value)
    assert await hot.try_once(rows) == [(1, 2)]


def test_another_thing_that_is_not_supported_is_no_outdated_statement(connection):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        connection.execute("select count(*) from pg_class for update")

    assert not is_outdated(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from a",
        "select a.*, b from a",
        "select b, * from a",
        "with c as (select 1) select * from c",
        "update a set b = 1 returning *",
        "SELECT  *\n  FROM f(1, (2))",
    ],
)
def test_a_star_that_stands_for_columns_is_found(sql):
    assert has_open_columns(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from a",
        "select 2 * 3",
        "with c as (select * from a) select b from c",
        "select (a).b from (select a.* from a) as a",
        "insert into a select b from c",
    ],
)
def test_other_stars_are_not(sql):
    assert not has_open_columns(sql)
