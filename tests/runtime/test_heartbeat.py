"""The rows of schedulers and servers: they come, stay and go with their processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.processes import Activity, Process, ProcessKind
from mainspring.runtime.heartbeat import Heartbeat, process_facts
from tests.support.databases import role
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

SEEN = "select kind, clock_offset_ms, round_trip_ms from mainspring.processes"


@asynccontextmanager
async def beating(url: str, *, lease_seconds: float = 1.0) -> AsyncIterator[Heartbeat]:
    connection = ReconnectingConnection(url, name="mainspring test")
    heartbeat = Heartbeat(
        process_facts(ProcessKind.SERVER, "1.0"),
        connection.try_once,
        lambda: Activity({"address": "a:1"}),
        lease_seconds=lease_seconds,
    )
    task = asyncio.create_task(heartbeat.run())
    try:
        yield heartbeat
    finally:
        heartbeat.stop()
        await task
        await connection.close()


async def rows(app: Mainspring) -> list[Process]:
    return await app.processes.alist()


async def test_a_row_has_a_clock_reading_soon_and_goes_with_its_process(database_url, connection):
    async with beating(database_url):
        query = f"{SEEN} where clock_offset_ms is not null"
        found = await await_until(lambda: connection.execute(query).fetchone(), what="a reading")
        kind, offset_ms, round_trip_ms = found

    assert kind == "server"
    assert abs(offset_ms) <= round_trip_ms + 50  # It is the same machine.
    assert connection.execute(SEEN).fetchone() is None


async def test_a_row_that_was_removed_comes_back(database_url, connection):
    async with beating(database_url):
        await await_until(lambda: connection.execute(SEEN).fetchone(), what="it is seen")
        connection.execute("delete from mainspring.processes")
        await await_until(lambda: connection.execute(SEEN).fetchone(), what="it is seen again")


@pytest.mark.parametrize(("minutes", "count"), [(59, 1), (61, 0)])
async def test_who_was_silent_for_an_hour_is_pruned(database_url, connection, minutes, count):
    connection.execute(
        "insert into mainspring.processes (expires_at, pid, schema_number, kind, name, host,"
        " identity, version) values (now() - make_interval(mins => %s), 1, 1, 'scheduler', 'old',"
        " 'a', '', '1')",
        (minutes,),
    )
    async with beating(database_url):
        await await_until(
            lambda: connection.execute(f"{SEEN} where kind = 'server'").fetchone(),
            what="another begins",
        )
        found = connection.execute("select count(*) from mainspring.processes where name = 'old'")

        assert found.fetchone() == (count,)


async def test_a_login_without_rights_is_not_shown_and_goes_on(database_url, connection):
    with role(database_url) as name:
        url = psycopg.conninfo.make_conninfo(database_url, user=name, password=name)
        async with beating(url) as heartbeat:
            await await_until(lambda: heartbeat.loop.passes > 1, what="it tries again")

    assert connection.execute(SEEN).fetchone() is None


async def test_a_scheduler_says_that_it_leads_and_when_it_checked(app: Mainspring):
    async with scheduling(app):

        async def leading() -> Process | None:
            found = await rows(app)
            return next((each for each in found if each.leads and each.checked_at), None)

        process = await await_until(leading, what="it leads")
        assert process is not None
        assert (process.kind, process.is_alive) == (ProcessKind.SCHEDULER, True)
        assert (await app.processes.astatus()).leader is not None
    assert await rows(app) == []
