"""Connections of API requests: nothing waits or runs on them for long, also through a pooler."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from mainspring.db import request_pools
from mainspring.db.database import Database
from mainspring.db.request_sessions import RequestSession
from mainspring.domain.errors.database import ConnectionsBusy
from mainspring.settings import load


@pytest.fixture(params=[False, True], ids=["direct", "pooler"])
async def database(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Database]:
    opened = Database(load(database_url=database_url, use_pooler=request.param))
    yield opened
    await opened.aclose()


async def shown(session: RequestSession, name: str) -> str:
    row = await (await session.execute(f"select current_setting('{name}')")).fetchone()
    assert row is not None
    return str(row[0])


async def test_statements_and_waits_for_locks_end(database: Database):
    requests = RequestSession(database, "tenant a")

    assert await shown(requests, "lock_timeout") == "2s"
    assert await shown(requests, "statement_timeout") == "30s"
    assert await shown(requests.searching(), "lock_timeout") == "2s"
    assert await shown(requests.searching(), "statement_timeout") == "10s"


async def test_a_search_that_takes_too_long_is_stopped(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request_pools, "SEARCH_SECONDS", 1)

    with pytest.raises(psycopg.errors.QueryCanceled):
        await RequestSession(database, "tenant a").searching().execute("select pg_sleep(60)")


async def test_who_uses_its_whole_share_is_refused_and_others_are_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request_pools, "WAIT_SECONDS", 0.05)
    busy, other = RequestSession(database, "tenant a"), RequestSession(database, "tenant b")

    async def sleep() -> None:
        await busy.execute("select pg_sleep(60)")

    tasks = [asyncio.create_task(sleep()) for _ in range(12)]
    done, sleeping = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    try:
        assert len(sleeping) >= request_pools.REQUESTS // 2
        with pytest.raises(ConnectionsBusy, match=r"requests of tenant a .* for 0\.05 s"):
            await done.pop()
        assert await shown(other, "lock_timeout") == "2s"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
