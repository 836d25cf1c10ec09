"""Events and triggers that cost too much, or cannot be written: the others go on."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import Mainspring
from mainspring.domain.errors import InvalidTemplate, InvalidTrigger
from mainspring.domain.triggers import MOST_TRIGGERS
from mainspring.runtime.dispatcher.batches import RoundRobin
from mainspring.runtime.dispatcher.rendering import plan_some
from mainspring.settings import load
from mainspring.store.events import Waiting
from mainspring.store.triggers import Match
from tests.support import events, rows
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

# Another tenant's event, whatever someone else sends.
SOON = 5
REFUSE = """
create function refuse() returns trigger language plpgsql as
$$ begin raise exception 'not this one' using errcode = '{sqlstate}'; end $$;
create trigger refuse before insert on mainspring.dispatches for each row
    when (new.event_id = {event_id}) execute function refuse()
"""


@pytest.fixture
def tenants(connection: psycopg.Connection) -> None:
    for tenant in ("acme", "zoltag"):
        rows.insert_tenant(connection, tenant)
    events.insert_trigger(connection, "of zoltag", tenant_id="zoltag")


def outcomes(connection: psycopg.Connection, tenant: str) -> list[str]:
    query = (
        "select dispatch.outcome from mainspring.dispatches as dispatch"
        " join mainspring.events as event using (event_id) where event.tenant_id = %s"
    )
    return [outcome for (outcome,) in connection.execute(query, (tenant,)).fetchall()]


def emit_as(
    connection: psycopg.Connection, tenant: str, count: int, context: dict[str, object]
) -> None:
    connection.execute(
        "select mainspring.emit('provider.changed', %s, tenant => %s) from generate_series(1, %s)",
        (Jsonb(context), tenant, count),
    )


# Triggers that cost too much


@pytest.mark.usefixtures("tenants")
async def test_hundreds_of_copies_of_an_event_fail_and_nobody_waits(
    app: Mainspring, connection: psycopg.Connection
):
    copies = {f"copy{number}": "{{event}}" for number in range(920)}
    events.insert_trigger(connection, "bomb", tenant_id="acme", payload=copies)
    emit_as(connection, "acme", 3, {"rows": [[number] for number in range(7000)]})
    async with scheduling(app):
        emit_as(connection, "zoltag", 1, {})
        await await_until(lambda: outcomes(connection, "zoltag") == ["enqueued"], SOON)
        await await_until(lambda: outcomes(connection, "acme") == ["failed"] * 3, SOON)

    query = "select distinct error from mainspring.dispatches where error is not null"
    ((error,),) = connection.execute(query).fetchall()
    assert "renders to more than 1,048,576 characters" in error


@pytest.mark.usefixtures("tenants")
async def test_large_events_with_ten_triggers_are_dispatched_and_nobody_waits(
    app: Mainspring, connection: psycopg.Connection
):
    for number in range(10):
        events.insert_trigger(
            connection, f"t{number}", tenant_id="acme", payload={"all": "{{event}}"}
        )
    emit_as(connection, "acme", 8, {"text": '"' * 450_000})
    async with scheduling(app):
        emit_as(connection, "zoltag", 1, {})
        await await_until(lambda: outcomes(connection, "zoltag") == ["enqueued"], SOON)
        # The others follow event by event.
        await await_until(lambda: len(outcomes(connection, "acme")) >= 20, 15)

    assert set(outcomes(connection, "acme")) == {"enqueued"}


async def test_a_trigger_with_too_many_expressions_or_bytes_is_refused(app: Mainspring):
    @app.job
    async def sync(**_: object) -> None: ...

    await app.aregister_definitions()
    create = app.triggers.acreate
    copies = {f"copy{number}": "{{event}}" for number in range(200)}
    await create("most", event="a", definition=sync, payload=copies)
    with pytest.raises(InvalidTemplate, match="at most 200 expressions"):
        await create("more", event="a", definition=sync, payload={**copies, "x": "{{event}}"})
    with pytest.raises(InvalidTrigger, match="the limit is 65536; put large values into the event"):
        await create("large", event="a", definition=sync, payload={"text": "x" * 65_536})


def test_an_event_is_given_to_500_triggers():
    matches = [match(number) for number in range(MOST_TRIGGERS + 5)]

    (planned,) = plan_some([waiting(1)], matches, load())

    assert len(planned.plans) == MOST_TRIGGERS + 1
    assert all("payload" in plan for plan in planned.plans[:MOST_TRIGGERS])
    assert "more than 500 triggers" in planned.plans[-1]["error"]


def test_as_many_events_are_written_together_as_make_500_jobs():
    planned = plan_some([waiting(number) for number in range(50)], [match(1)] * 100, load())

    assert len(planned) == 5


def match(number: int) -> Match:
    return Match(
        trigger_id=number,
        tenant_id="default",
        name=f"t{number}",
        event="*",
        definition="work",
        payload='{"a": 1}',
        unknown_paths="refuse",
        dedupe_window=None,
        queue=None,
        priority=None,
        version=None,
        arg_schema=None,
    )


def waiting(number: int) -> Waiting:
    return Waiting(number, "default", "a", "{}", None, datetime.now(UTC), 0, None)


# Events that cannot be written


async def test_an_event_that_cannot_be_written_fails_by_itself(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    events.emit_many(connection, 5)
    connection.execute(REFUSE.format(event_id=3, sqlstate="22000"))

    assert await RoundRobin(load()).dispatch(aconnection) == 5

    assert events.handled(connection) == 5
    assert [events.outcomes(connection, number) for number in (1, 2, 4, 5)] == [["enqueued"]] * 4
    assert len(events.jobs(connection)) == 4


@pytest.mark.usefixtures("tenants")
async def test_an_event_that_may_be_written_later_waits_and_nobody_else_does(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    events.insert_trigger(connection)
    events.emit_many(connection, 3)
    events.emit_many(connection, 1, "zoltag")
    connection.execute(REFUSE.format(event_id=2, sqlstate="53100"))
    round_robin = RoundRobin(load())

    assert await round_robin.dispatch(aconnection) == 3
    assert await round_robin.dispatch(aconnection) == 0
    assert events.outcomes(connection, 2) == []
    connection.execute("drop trigger refuse on mainspring.dispatches")
    assert await round_robin.dispatch(aconnection) == 1
    assert events.outcomes(connection, 2) == ["enqueued"]


@pytest.mark.parametrize("table", ["dispatches", "jobs"])
async def test_no_event_fails_for_a_missing_privilege(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection, table: str
):
    events.insert_trigger(connection)
    events.emit_many(connection, 3)
    refuse = REFUSE.format(event_id=0, sqlstate="42501").replace("when (new.event_id = 0)", "")
    connection.execute(refuse.replace("mainspring.dispatches", f"mainspring.{table}"))
    round_robin = RoundRobin(load())

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await round_robin.dispatch(aconnection)
    assert events.handled(connection) == 0
    connection.execute(f"drop trigger refuse on mainspring.{table}")
    assert await round_robin.dispatch(aconnection) == 3
    assert events.outcomes(connection) == ["enqueued"] * 3


@pytest.mark.usefixtures("tenants")
async def test_an_open_transaction_with_the_same_dedupe_key_delays_nobody_else(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    window = {"dedupe_window": timedelta(hours=1), "payload": {"a": 1}}
    trigger_id = events.insert_trigger(connection, "windowed", tenant_id="acme", **window)
    with psycopg.connect(database_url) as own:
        key = own.execute(
            "select mainspring.window_key(%s, 'acme', 'work', '{\"a\": 1}')", (trigger_id,)
        )
        own.execute(
            "select mainspring.enqueue('work', tenant => 'acme', dedupe_key => %s,"
            " dedupe_window => interval '1 hour')",
            key.fetchone(),
        )
        async with scheduling(app):
            emit_as(connection, "acme", 1, {})
            emit_as(connection, "zoltag", 1, {})
            await await_until(lambda: outcomes(connection, "zoltag") == ["enqueued"], SOON)
            own.rollback()
            await await_until(lambda: outcomes(connection, "acme") == ["enqueued"], SOON)


# The loop that serves everything else


@pytest.mark.usefixtures("tenants")
async def test_the_event_loop_stays_alive_while_payloads_are_rendered(
    aconnection: psycopg.AsyncConnection, connection: psycopg.Connection
):
    for number in range(10):
        events.insert_trigger(
            connection, f"t{number}", tenant_id="acme", payload={"all": "{{event}}"}
        )
    emit_as(connection, "acme", 1, {"rows": list(range(100_000))})
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            worst = max(worst, time.monotonic() - began)

    ticking = asyncio.create_task(tick())
    await RoundRobin(load()).dispatch(aconnection)
    ticking.cancel()

    assert outcomes(connection, "acme") == ["enqueued"] * 10
    assert worst < 0.5
