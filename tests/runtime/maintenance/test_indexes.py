"""Indexes that have grown are rebuilt while the queue goes on, and leftovers are dropped."""

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring.runtime.maintenance.indexes import rebuild_indexes

# Dead entries as a long transaction leaves them: many came and went before they could be removed.
GROWTH = """
insert into mainspring.jobs (definition, queue)
select 'work', 'queue ' || n % 100 from generate_series(1, 20000) as n
"""
SIZE = "select pg_relation_size('mainspring.jobs_ready')"
INVALID = "select relname from pg_index join pg_class on oid = indexrelid where not indisvalid"
KILOBYTES_200 = 200 * 1024


def one(connection: psycopg.Connection, query: str) -> int:
    ((number,),) = connection.execute(query.encode()).fetchall()
    return int(number)


@pytest.fixture
def grown(connection: psycopg.Connection, database_url: str) -> None:
    connection.execute("set synchronous_commit = off")
    connection.execute(GROWTH)
    connection.execute("delete from mainspring.jobs")
    connection.execute("vacuum (truncate off) mainspring.jobs")
    connection.execute("analyze mainspring.jobs")
    connection.execute("select pg_stat_force_next_flush()")


async def test_an_index_that_is_many_times_its_content_is_rebuilt(
    grown: None, aconnection: AsyncConnection, connection: psycopg.Connection
):
    before = one(connection, SIZE)

    rebuilt = await rebuild_indexes(aconnection, min_bytes=KILOBYTES_200)

    assert {"jobs_ready", "jobs_pkey"} <= set(rebuilt)
    assert one(connection, SIZE) < before / 10
    assert await rebuild_indexes(aconnection, min_bytes=KILOBYTES_200) == []


async def test_an_index_with_as_much_content_is_left_alone(
    aconnection: AsyncConnection, connection: psycopg.Connection
):
    connection.execute(GROWTH)
    connection.execute("analyze mainspring.jobs")

    assert await rebuild_indexes(aconnection, min_bytes=KILOBYTES_200) == []


async def test_what_a_rebuild_that_was_ended_left_behind_is_dropped(
    grown: None, aconnection: AsyncConnection, connection: psycopg.Connection, database_url: str
):
    with psycopg.connect(database_url) as holder:
        holder.execute("select count(*) from mainspring.jobs")
        connection.execute("set lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute("reindex index concurrently mainspring.jobs_ready")
    ((left,),) = connection.execute(INVALID).fetchall()
    assert left.startswith("jobs_ready_cc")

    await rebuild_indexes(aconnection, min_bytes=KILOBYTES_200)

    assert connection.execute(INVALID).fetchall() == []


async def test_only_one_worker_at_a_time_rebuilds(
    grown: None, aconnection: AsyncConnection, connection: psycopg.Connection
):
    connection.execute("select pg_advisory_lock(hashtext('mainspring.cleanup'))")

    assert await rebuild_indexes(aconnection, min_bytes=KILOBYTES_200) == []
