"""Grants: whatever comes free is served, also while a grant is under way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.limits import LimitKey
from mainspring.runtime.maintenance.limit_grants import Grants, KeyScan, grant_all
from mainspring.store import limits
from mainspring.store.limits import Granted
from tests.support.rows import insert_definition
from tests.support.waiting import await_until

KEY = LimitKey("serial", "", "default")


@pytest.fixture
async def grants(database_url: str) -> AsyncIterator[Grants]:
    """Not yet running."""
    connection = ReconnectingConnection(database_url, name="grants")
    yield Grants(connection, has_backlog=lambda: False, on_ready=lambda: None)
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
    asked: list[Sequence[LimitKey]] = []
    grant = limits.grant

    async def meanwhile(connection: AsyncConnection[Any], keys: Sequence[LimitKey]) -> Granted:
        asked.append(keys)
        if len(asked) == 1:
            grants.freed({KEY})
        return await grant(connection, keys)

    monkeypatch.setattr(limits, "grant", meanwhile)
    grants.freed({KEY})
    async with running(grants):
        await await_until(lambda: len(asked) == 2, 5, "the key is granted again")

    assert asked == [[KEY], [KEY]]


async def test_what_someone_else_was_granting_is_tried_again(
    grants: Grants,
    connection: psycopg.Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
):
    async def nothing(*_: object, **__: object) -> list[LimitKey]:
        return []

    monkeypatch.setattr(limits, "waiting_keys", nothing)  # A scan would find it anyway.
    insert_definition(connection, "serial", concurrency=1)
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")
        connection.execute("select mainspring.enqueue('serial')")
        async with running(grants):
            grants.freed({KEY})
            passes = grants.loop.passes
            await await_until(lambda: grants.loop.passes > passes + 1, 5, "it was tried twice")
            assert _waiting(connection) == 1
            other.rollback()
            await await_until(lambda: _waiting(connection) == 0, 5, "the job was let go")


async def test_a_key_with_more_than_its_share_is_looked_at_until_it_is_granted(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    insert_definition(connection, "wide", concurrency=9000)
    connection.execute(
        "select count(*) from mainspring.enqueue_many('wide',"
        " array(select '{}'::jsonb from generate_series(1, 9100)))"
    )

    granted = await limits.grant(aconnection, [LimitKey("wide", "", "default")])

    assert granted.unfinished == [LimitKey("wide", "", "default")]
    assert granted.jobs + await grant_all(aconnection) == 9000
    assert _waiting(connection) == 100


def _waiting(connection: psycopg.Connection) -> int:
    query = "select count(*) from mainspring.jobs where waits_for = 'limit'"
    ((count,),) = connection.execute(query).fetchall()
    return int(count)


@pytest.fixture
def scan(monkeypatch: pytest.MonkeyPatch) -> KeyScan:
    """One that ended at 100 and took a tenth of a second."""
    monkeypatch.setattr("mainspring.runtime.maintenance.limit_grants.time.monotonic", lambda: 100.0)
    scan = KeyScan()
    scan.is_due, scan.is_under_way = False, True
    scan.passed([], began_at=99.9)
    return scan


@pytest.mark.parametrize(("is_asked_for", "starts_at"), [(True, 101.0), (False, 102.0)])
def test_a_scan_leaves_time_for_other_things(scan: KeyScan, is_asked_for: bool, starts_at: float):
    scan.is_due = is_asked_for

    assert not scan.is_time(starts_at - 0.01)
    assert scan.is_time(starts_at + 0.01)


@pytest.mark.parametrize("is_lowered", [True, False])
async def test_places_are_taken_back_at_once_only_if_a_limit_may_be_lower(
    aconnection: AsyncConnection, connection: psycopg.Connection, scan: KeyScan, is_lowered: bool
):
    await scan.start(aconnection)
    scan.is_lowered = is_lowered

    # Whoever has the lock keeps all others from granting and from taking back.
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")
        assert await scan.start(aconnection) is not is_lowered
