"""A dispatcher beside a scheduler: what wakes it, whose turn it is, and what cannot stop it."""

from datetime import timedelta
from functools import partial

import psycopg
from fastapi import FastAPI

from mainspring import Mainspring
from mainspring.domain.retention import RetentionKind
from mainspring.runtime.dispatcher.batches import RoundRobin
from mainspring.settings import load
from mainspring.store import events as store
from mainspring.store import retention
from tests.support import events, rows
from tests.support.log_lines import captured_lines
from tests.support.schedules import scheduling
from tests.support.waiting import await_until
from tests.support.workers import working

# Far below the rest of a dispatcher that nobody wakes.
SOON = 1.5
LIMIT = 1024 * 1024
DAY = timedelta(days=1)


# What wakes it


async def test_an_event_wakes_an_idle_dispatcher_at_once(
    app: Mainspring, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    async with scheduling(app):
        await await_until(lambda: events.is_resting(connection))
        event_id = await app.aemit("provider.changed")
        await await_until(lambda: events.outcomes(connection, event_id) == ["enqueued"], SOON)


async def test_an_event_waits_for_its_commit_and_never_comes_after_a_rollback(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    events.insert_trigger(connection)
    async with scheduling(app), await psycopg.AsyncConnection.connect(database_url) as own:
        await await_until(lambda: events.is_resting(connection))
        await app.aemit("provider.undone", connection=own)
        await own.rollback()
        await app.aemit("provider.done", connection=own)
        assert events.handled(connection) == 0
        await own.commit()
        await await_until(lambda: events.handled(connection) == 1, SOON)

    assert [each["event"] for each in events.dispatches(connection)] == ["provider.done"]
    assert len(events.jobs(connection)) == 1


async def test_a_replay_wakes_it_too(app: Mainspring, connection: psycopg.Connection):
    events.insert_trigger(connection)
    async with scheduling(app):
        event_id = await app.aemit("provider.changed")
        await await_until(lambda: events.handled(connection) == 1)
        await await_until(lambda: events.is_resting(connection))
        await app.events.areplay(event_id)
        await await_until(lambda: len(events.jobs(connection)) == 2, SOON)


async def test_what_was_emitted_while_nobody_ran_is_dispatched_at_the_start(
    app: Mainspring, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    events.emit_many(connection, 120)
    async with scheduling(app):
        await await_until(lambda: events.handled(connection) == 120)

    numbers = [each["payload"] for each in events.jobs(connection)]
    assert len(numbers) == 120


async def test_through_a_pooler_it_looks_by_itself(
    database_url: str, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    settings = load(database_url=database_url, use_pooler=True, poll_seconds=0.1)
    async with Mainspring(settings=settings) as app, scheduling(app):
        event_id = await app.aemit("provider.changed")
        await await_until(lambda: events.outcomes(connection, event_id) == ["enqueued"])


async def test_an_asgi_app_dispatches_too(app: Mainspring, connection: psycopg.Connection):
    events.insert_trigger(connection)
    site = FastAPI(lifespan=app.lifespan)
    async with site.router.lifespan_context(site):
        await app.aemit("provider.changed")
        await await_until(lambda: len(events.jobs(connection)) == 1)


async def test_from_an_event_to_a_result(app: Mainspring, connection: psycopg.Connection):
    @app.job
    async def sync(folder: str, size: int) -> str:
        return f"{folder} has {size}"

    payload = {"folder": "{{event.folder}}", "size": "{{event.size|default(0)}}"}
    await app.triggers.acreate("resync", event="provider.*", definition=sync, payload=payload)
    async with scheduling(app), working(app):
        event_id = await app.aemit("provider.folder_changed", {"folder": "/a", "size": 3})
        await await_until(lambda: results(connection) == ["/a has 3"])

    (job,) = events.jobs(connection)
    assert job["correlation_id"] == f"event:{event_id}"


def results(connection: psycopg.Connection) -> list[str]:
    return [each["result"] for each in events.jobs(connection)]


# Whose turn it is


async def test_a_burst_of_one_tenant_does_not_delay_another(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    for tenant in ("acme", "zoltag"):
        rows.insert_tenant(connection, tenant)
    events.emit_many(connection, 500, "acme")
    events.emit_many(connection, 1, "zoltag")

    await RoundRobin(load()).dispatch(aconnection)

    query = "select tenant_id, count(*) from mainspring.events where handled_at is not null"
    found = connection.execute(f"{query} group by tenant_id order by 1".encode()).fetchall()
    assert found == [("acme", store.BATCH // 2), ("zoltag", 1)]


async def test_large_events_of_one_tenant_do_not_delay_another(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    for tenant in ("acme", "zoltag"):
        rows.insert_tenant(connection, tenant)
    emit_large(connection, 12, "acme")
    events.emit_many(connection, 1, "zoltag")

    await RoundRobin(load()).dispatch(aconnection)

    query = "select handled_at is not null from mainspring.events where tenant_id = 'zoltag'"
    assert connection.execute(query).fetchall() == [(True,)]


async def test_more_tenants_than_a_batch_holds_take_round_robin(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    tenants = [f"t{number:03}" for number in range(store.BATCH + 20)]
    for tenant in tenants:
        rows.insert_tenant(connection, tenant)
        events.emit_many(connection, 2, tenant)
    round_robin = RoundRobin(load())

    assert [await round_robin.dispatch(aconnection) for _ in range(2)] == [store.BATCH, 40]

    query = "select distinct tenant_id from mainspring.events where handled_at is not null"
    assert len(connection.execute(query).fetchall()) == len(tenants)
    assert await round_robin.dispatch(aconnection) == store.BATCH
    assert await round_robin.dispatch(aconnection) == 0
    assert events.handled(connection) == 2 * len(tenants)


async def test_large_contexts_make_small_batches(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    emit_large(connection, 12, "default")
    round_robin = RoundRobin(load())

    handled = [await round_robin.dispatch(aconnection) for _ in range(3)]

    assert 1 < handled[0] < 12
    assert sum(handled) == 12


def emit_large(connection: psycopg.Connection, count: int, tenant: str) -> None:
    """Events of 960 kB, which nothing can compress."""
    connection.execute(
        "select mainspring.emit('a', jsonb_build_object('text', (select string_agg("
        " md5(random()::text), '') from generate_series(1, 30000))), tenant => %s)"
        " from generate_series(1, %s)",
        (tenant, count),
    )


# What cannot stop it


async def test_a_failure_is_told_in_the_log_and_does_not_stop_it(
    app: Mainspring, connection: psycopg.Connection
):
    events.insert_trigger(connection, "broken", payload={"a": "{{event.gone}}"})
    with captured_lines() as logs:
        async with scheduling(app):
            first = await app.aemit("provider.a")
            second = await app.aemit("provider.b", {"gone": 1})
            await await_until(lambda: events.handled(connection) == 2)
            await await_until(lambda: "trigger_failed" in [line["event"] for line in logs])

    assert events.outcomes(connection, first) == ["failed"]
    assert events.outcomes(connection, second) == ["enqueued"]
    (told,) = [line for line in logs if line["event"] == "trigger_failed"]
    assert (told["trigger"], told["event_id"]) == ("broken", first)


async def test_a_dispatcher_that_loses_its_connection_goes_on(
    app: Mainspring, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    async with scheduling(app):
        await await_until(lambda: events.is_resting(connection))
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'mainspring%' and datname = current_database()"
        )
        events.emit(connection)
        await await_until(lambda: events.handled(connection) == 1)


async def test_events_that_another_holds_are_left_to_it(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection, database_url: str
):
    events.emit_many(connection, 3)
    with psycopg.connect(database_url) as other:
        other.execute("select from mainspring.events order by event_id limit 1 for update")
        assert await RoundRobin(load()).dispatch(aconnection) == 2
        assert await RoundRobin(load()).dispatch(aconnection) == 0
        assert await store.has_unhandled(aconnection)
        other.rollback()

    assert await RoundRobin(load()).dispatch(aconnection) == 1
    assert not await store.has_unhandled(aconnection)


async def test_what_another_let_go_of_is_looked_for_without_being_told(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    events.emit_many(connection, 3)
    with psycopg.connect(database_url) as other:
        other.execute("select from mainspring.events order by event_id limit 1 for update")
        async with scheduling(app):
            await await_until(lambda: events.handled(connection) == 2)
            await await_until(lambda: events.is_resting(connection))
            other.rollback()
            await await_until(lambda: events.handled(connection) == 3, 2 * SOON)


# Retention


async def test_handled_events_are_pruned_with_what_came_of_them(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    events.emit_many(connection, 4)
    await RoundRobin(load()).dispatch(aconnection)
    waiting = events.emit(connection)
    connection.execute(
        "update mainspring.events set handled_at = now() - event_id * interval '1 day'"
        " + interval '1 minute' where handled_at is not null"
    )
    connection.execute("update mainspring.events set emitted_at = '2000-01-01'")

    (window,) = await retention.windows(aconnection, RetentionKind.EVENTS, 2 * DAY)
    prune = partial(retention.prune, aconnection, RetentionKind.EVENTS, window, fallback=2 * DAY)
    assert await prune(limit=1) == 1
    assert await prune(limit=2) < 2

    left = connection.execute("select event_id from mainspring.events order by 1").fetchall()
    assert left == [(1,), (2,), (waiting,)]
    assert rows.count(connection, "dispatches") == 2
    assert len(events.jobs(connection)) == 4


async def test_a_scheduler_prunes_by_its_setting(database_url: str, connection: psycopg.Connection):
    for _ in range(2):
        events.emit(connection)
    connection.execute(
        "update mainspring.events set handled_at = now() - event_id * interval '1 day'"
    )
    settings = load(database_url=database_url, event_retention_days=1.5)
    async with Mainspring(settings=settings) as app, scheduling(app):
        await await_until(lambda: rows.count(connection, "events") == 1)


SLOW_DELETES = """
create function public.nap() returns trigger language plpgsql as
    'begin perform pg_sleep(30); return old; end';
create trigger nap before delete on mainspring.events for each row execute function public.nap();
"""
PRUNES = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event = 'PgSleep'
"""


async def test_an_event_does_not_wait_until_old_ones_are_pruned(
    app: Mainspring, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    events.emit(connection)
    connection.execute("update mainspring.events set handled_at = '2000-01-01'")
    connection.execute(SLOW_DELETES)
    async with scheduling(app):
        await await_until(lambda: connection.execute(PRUNES).fetchone() == (1,))
        event_id = await app.aemit("provider.changed")
        await await_until(lambda: events.outcomes(connection, event_id) == ["enqueued"], SOON)
        assert connection.execute(PRUNES).fetchone() == (1,)
