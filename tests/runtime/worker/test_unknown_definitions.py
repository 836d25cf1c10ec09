"""Jobs of a definition that a worker has not met wait while it is looked up, and cost nobody."""

from collections.abc import Iterator

import psycopg
import pytest

from mainspring import Mainspring
from tests.support.waiting import await_until
from tests.support.workers import working

SCHEMA = """
create schema shop;
create table shop.runs (number bigint generated always as identity, tenant text);
create function shop.work(payload jsonb) returns jsonb language sql as $$
    insert into shop.runs (tenant) values (payload ->> 'tenant');
    select '{"success": true, "message": "done"}'::jsonb
$$;
insert into mainspring.definitions (key, kind, spec)
values ('shop_work', 'sql', '{"function": "shop.work"}');
insert into mainspring.tenants (tenant_id, weight) values ('acme', 1), ('bell', 3);
select count(mainspring.enqueue('shop_work', '{"tenant": "acme"}', tenant => 'acme'))
  from generate_series(1, 50);
select count(mainspring.enqueue('shop_work', '{"tenant": "bell"}', tenant => 'bell'))
  from generate_series(1, 30);
"""
LOOKUPS = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like '%definitions%'
"""


@pytest.fixture
def shop(connection: psycopg.Connection) -> None:
    connection.execute(SCHEMA)


@pytest.fixture
def unreadable(shop: None, database_url: str) -> Iterator[psycopg.Connection]:
    """Nobody can read definitions until this connection commits."""
    with psycopg.connect(database_url) as blocker:
        blocker.execute("lock table mainspring.definitions in access exclusive mode")
        yield blocker


def running(connection: psycopg.Connection) -> int:
    (count,) = connection.execute(
        "select count(*) from mainspring.jobs where state = 'running'"
    ).fetchone() or (0,)
    return int(count)


async def test_a_job_of_a_remote_definition_waits_for_its_worker_also_where_unknown_ones_fail(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute("insert into mainspring.definitions (key, kind) values ('far', 'remote')")
    handle = await app.aenqueue("far", {})
    waits = "select waits_for from mainspring.jobs where job_id = %s"

    async with working(app, unknown_handler="fail"):
        await await_until(
            lambda: connection.execute(waits, (handle.id,)).fetchone() == ("handler",)
        )


async def test_no_more_are_claimed_than_can_start_and_tenants_still_take_turns(
    app: Mainspring, connection: psycopg.Connection, unreadable: psycopg.Connection
):
    async with working(app, concurrency=3, prefetch=0):
        await await_until(lambda: connection.execute(LOOKUPS).fetchone() == (1,))
        await await_until(lambda: running(connection) >= 3)
        assert running(connection) == 3
        unreadable.commit()
        count = "select count(*) from shop.runs"
        await await_until(lambda: connection.execute(count).fetchone() == (80,))

    (first,) = connection.execute(
        "select count(*) filter (where tenant = 'bell') from (select * from shop.runs"
        " order by number limit 45) as first"
    ).fetchone() or (0,)
    assert first == 30
