"""Grants: whatever comes free is served, also while a claim is under way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.limits import LimitKey
from mainspring.domain.types import WorkerId
from mainspring.runtime.maintenance.limit_grants import Grants, KeyScan
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.services.claiming import ClaimOrder
from mainspring.store import limits, workers
from mainspring.store.limits import LimitedClaim
from mainspring.store.workers import WorkerFacts
from tests.support.rows import insert_definition
from tests.support.waiting import await_until

KEY = LimitKey("serial", "", "default")


FACTS = WorkerFacts("claimer", "host", 1, "identity", ("default",), 1, "test")


@pytest.fixture
async def grants(database_url: str) -> AsyncIterator[Grants]:
    """Of a worker that serves one queue; not yet running."""
    connection = ReconnectingConnection(database_url, name="grants")
    events = WorkerEvents()
    yield Grants(connection, ClaimOrder(), queues=["default"], is_full=lambda: False, events=events)
    await connection.close()


@pytest.fixture
async def worker_id(aconnection: AsyncConnection) -> WorkerId:
    return await workers.register(aconnection, FACTS, timedelta(minutes=1))


async def claim(
    grants: Grants, connection: AsyncConnection, worker_id: WorkerId, limit: int = 100
) -> int:
    """How many jobs are claimed."""
    claimed = await grants.claim(
        connection, worker_id, buffered=dict, limit=limit, has_backlog=False
    )
    return sum(map(len, claimed.values()))


@asynccontextmanager
async def running(grants: Grants) -> AsyncIterator[None]:
    task = asyncio.create_task(grants.loop.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_comes_free_during_a_claim_is_served_after_it(
    grants: Grants,
    aconnection: AsyncConnection,
    worker_id: WorkerId,
    monkeypatch: pytest.MonkeyPatch,
):
    asked: list[Sequence[LimitKey]] = []
    claim_keys = limits.claim

    async def meanwhile(*given: Any, **options: Any) -> LimitedClaim | None:
        asked.append(given[1])
        if len(asked) == 1:
            grants.freed({KEY})
        return await claim_keys(*given, **options)

    monkeypatch.setattr(limits, "claim", meanwhile)
    grants.freed({KEY})
    while grants.is_due(has_backlog=False):
        await claim(grants, aconnection, worker_id)

    assert asked == [[KEY], [KEY]]


async def test_what_someone_else_was_claiming_is_tried_again(
    grants: Grants,
    aconnection: AsyncConnection,
    worker_id: WorkerId,
    connection: psycopg.Connection,
    database_url: str,
):
    insert_definition(connection, "serial", queue="default", concurrency=1)
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.limits'))")
        connection.execute("select mainspring.enqueue('serial')")
        grants.freed({KEY})
        assert await claim(grants, aconnection, worker_id) == 0
        assert not grants.is_due(has_backlog=False)
        other.rollback()
    await await_until(lambda: grants.is_due(has_backlog=False), 5, "it is tried again")

    assert await claim(grants, aconnection, worker_id) == 1
    assert _waiting(connection) == 0


async def test_a_key_with_more_than_its_share_is_looked_at_until_it_is_done(
    grants: Grants,
    aconnection: AsyncConnection,
    worker_id: WorkerId,
    connection: psycopg.Connection,
):
    insert_definition(connection, "wide", queue="default", concurrency=900)
    connection.execute(
        "select count(*) from mainspring.enqueue_many('wide',"
        " array(select '{}'::jsonb from generate_series(1, 910)))"
    )

    grants.freed([LimitKey("wide", "", "default")])
    while grants.is_due(has_backlog=False):
        await claim(grants, aconnection, worker_id, limit=200)

    assert _waiting(connection) == 10


async def test_a_scan_finds_the_keys_of_the_workers_queues(
    grants: Grants, connection: psycopg.Connection
):
    insert_definition(connection, "serial", queue="default", concurrency=1)
    async with running(grants):
        connection.execute("select mainspring.enqueue('serial', queue => 'far')")
        grants.scan_soon()
        passes = grants.loop.passes
        await await_until(lambda: grants.loop.passes > passes)
        assert not grants.is_due(has_backlog=False)
        connection.execute("select mainspring.enqueue('serial')")
        grants.scan_soon()
        await await_until(lambda: grants.is_due(has_backlog=False), 5, "the key is found")


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
