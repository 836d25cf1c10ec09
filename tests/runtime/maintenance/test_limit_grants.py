"""Grants: whatever comes free is served, also while a grant is under way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.db.pool import AsyncPool
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.limits import Room
from mainspring.runtime.maintenance.limit_grants import Grants, Lap, grant_all
from mainspring.store import limits
from mainspring.store.limits import Granted
from tests.support.rows import insert_definition
from tests.support.waiting import await_until

ROOM = Room("serial", "", "default")


@pytest.fixture
async def grants(database_url: str) -> AsyncIterator[Grants]:
    """Not yet running."""
    connection = ReconnectingConnection(database_url, name="grants")
    source = AsyncPool(database_url, size=1)
    yield Grants(connection, source, has_plenty=lambda: False, on_ready=lambda: None)
    await source.close()
    await connection.close()


@asynccontextmanager
async def running(grants: Grants) -> AsyncIterator[None]:
    task = asyncio.create_task(grants.loop.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_comes_free_during_a_grant_is_served_after_it(
    grants: Grants, monkeypatch: pytest.MonkeyPatch
):
    asked: list[Sequence[Room]] = []
    grant = limits.grant

    async def meanwhile(connection: AsyncConnection[Any], rooms: Sequence[Room]) -> Granted:
        asked.append(rooms)
        if len(asked) == 1:
            grants.freed({ROOM})
        return await grant(connection, rooms)

    monkeypatch.setattr(limits, "grant", meanwhile)
    grants.freed({ROOM})
    async with running(grants):
        await await_until(lambda: len(asked) == 2, 5, "the room is served again")

    assert asked == [[ROOM], [ROOM]]


async def test_what_someone_else_was_granting_is_tried_again(
    grants: Grants,
    connection: psycopg.Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
):
    async def nothing(*_: object, **__: object) -> list[Room]:
        return []

    monkeypatch.setattr(limits, "waiting_rooms", nothing)  # A lap would find it anyway.
    insert_definition(connection, "serial", concurrency=1)
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")
        connection.execute("select mainspring.enqueue('serial')")
        async with running(grants):
            grants.freed({ROOM})
            passes = grants.loop.passes
            await await_until(lambda: grants.loop.passes > passes + 1, 5, "it was tried twice")
            assert _waiting(connection) == 1
            other.rollback()
            await await_until(lambda: _waiting(connection) == 0, 5, "the job was let go")


async def test_a_room_with_more_than_its_share_is_visited_until_it_is_served(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    insert_definition(connection, "wide", concurrency=9000)
    connection.execute(
        "select count(*) from mainspring.enqueue_many('wide',"
        " array(select '{}'::jsonb from generate_series(1, 9100)))"
    )

    granted = await limits.grant(aconnection, [Room("wide", "", "default")])

    assert granted.unfinished == [Room("wide", "", "default")]
    assert granted.jobs + await grant_all(aconnection) == 9000
    assert _waiting(connection) == 100


def _waiting(connection: psycopg.Connection) -> int:
    query = "select count(*) from mainspring.jobs where waits_for = 'limit'"
    ((count,),) = connection.execute(query).fetchall()
    return int(count)


@pytest.fixture
def lap(monkeypatch: pytest.MonkeyPatch) -> Lap:
    """One that ended at 100 and took a tenth of a second."""
    monkeypatch.setattr("mainspring.runtime.maintenance.limit_grants.time.monotonic", lambda: 100.0)
    lap = Lap()
    lap.is_due, lap.is_under_way = False, True
    lap.passed([], began_at=99.9)
    return lap


@pytest.mark.parametrize(("is_asked_for", "starts_at"), [(True, 101.0), (False, 102.0)])
def test_a_lap_leaves_time_for_other_things(lap: Lap, is_asked_for: bool, starts_at: float):
    lap.is_due = is_asked_for

    assert not lap.is_time(starts_at - 0.01)
    assert lap.is_time(starts_at + 0.01)


@pytest.mark.parametrize("is_lowered", [True, False])
async def test_places_are_taken_back_at_once_only_if_a_limit_may_be_lower(
    aconnection: AsyncConnection, connection: psycopg.Connection, lap: Lap, is_lowered: bool
):
    await lap.start(aconnection)
    lap.is_lowered = is_lowered

    # Whoever has the lock keeps all others from granting and from taking back.
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")
        assert await lap.start(aconnection) is not is_lowered
