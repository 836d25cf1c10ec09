"""Retention of audit entries, slots and events; and a preview that removes what it said."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest

from mainspring import JobState, Mainspring
from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.domain.errors.retention import RetentionNotFound
from mainspring.domain.retention import RetentionKind
from mainspring.runtime.maintenance.cleanup import Cleanup
from mainspring.runtime.maintenance.pruning import CleanupTaken, HistoryPruner
from mainspring.runtime.maintenance.records import RecordPruner
from tests.support.rows import insert, insert_definition, insert_job, insert_tenant

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
IDS = {
    "jobs": "select job_id, finished_at from mainspring.jobs_history",
    "audit": "select audit_id, at from mainspring.audit where noun = 'thing'",
    "slots": "select job_id, scheduled_for from mainspring.slots",
    "events": "select event_id, handled_at from mainspring.events where handled_at is not null",
}
FALLBACKS = {"slots": 90 * DAY, "events": 30 * DAY}


@pytest.fixture
async def cleaning(database_url: str) -> AsyncIterator[ReconnectingConnection]:
    connection = ReconnectingConnection(database_url, name="test")
    yield connection
    await connection.close()


def pruner(cleaning: ReconnectingConnection, kind: str, *, batch: int = 3) -> RecordPruner:
    return RecordPruner(
        cleaning.try_once, RetentionKind(kind), fallback=FALLBACKS.get(kind), batch=batch
    )


async def prune(cleaning: ReconnectingConnection, kind: str) -> int:
    if kind == "jobs":
        return await HistoryPruner(cleaning.try_once).prune()
    return await pruner(cleaning, kind).prune()


def fill(connection: psycopg.Connection) -> None:
    """Of the tenants default and acme a hundred of each kind, one for every ten days."""
    insert_tenant(connection, "acme")
    insert_definition(connection, "work")
    insert_definition(connection, "brief", retention=DAY)
    for tenant in ("default", "acme"):
        insert(
            connection, "schedules", tenant_id=tenant, name="s", definition="work", cron="@daily"
        )
        for number in range(1, 101):
            at = NOW - number * 10 * DAY + timedelta(hours=1)
            state = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)[number % 3]
            definition = "work" if number % 7 else "brief"
            insert_job(connection, state, tenant_id=tenant, definition=definition, finished_at=at)
            insert(
                connection,
                "audit",
                at=at,
                tenant_id=tenant,
                actor="ann",
                action="update",
                noun="thing",
                subject="x",
            )
            connection.execute(
                "insert into mainspring.slots (schedule_id, scheduled_for, outcome, job_id,"
                " run_state) select schedule_id, %s, 'enqueued', %s, %s from mainspring.schedules"
                " where tenant_id = %s",
                (at, number + (1000 if tenant == "acme" else 0), state, tenant),
            )
            insert(
                connection,
                "events",
                tenant_id=tenant,
                name="x",
                context=psycopg.types.json.Jsonb({}),
                handled_at=at,
            )


def found(connection: psycopg.Connection, kind: str) -> dict[int, date]:
    """The ids of a kind, with their days."""
    rows = connection.execute(IDS[kind].encode()).fetchall()
    return {number: at.astimezone(UTC).date() for number, at in rows}


def by_day(days: list[date]) -> dict[date, int]:
    return {day: days.count(day) for day in days}


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize(
    ("kind", "state", "keep"),
    [
        ("jobs", None, 300 * DAY),
        ("jobs", "failed", 5 * DAY),
        ("jobs", "succeeded", 500 * DAY),
        ("audit", None, 200 * DAY),
        ("audit", None, 900 * DAY),
        ("slots", None, 400 * DAY),
        ("slots", None, 20 * DAY),
        ("events", None, 100 * DAY),
    ],
)
async def test_a_preview_removes_exactly_what_it_said(
    app: Mainspring,
    connection: psycopg.Connection,
    cleaning: ReconnectingConnection,
    kind: str,
    state: str | None,
    keep: timedelta,
    tenant: str | None,
):
    fill(connection)
    other = "default" if tenant == "acme" else None
    at_present = await app.retention.apreview(kind, tenant=tenant)
    others = await app.retention.apreview(kind, tenant=other) if other else []
    said = await app.retention.apreview(kind, keep=keep, state=state, tenant=tenant)
    before = found(connection, kind)

    await app.retention.aset(kind, keep=keep, state=state, tenant=tenant)
    assert await app.retention.apreview(kind, tenant=tenant) == [
        type(day)(day.kind, day.day, day.count, day.count) for day in said
    ]
    removed = await prune(cleaning, kind)
    gone = [day for number, day in before.items() if number not in found(connection, kind)]

    expected = by_day([day.day for day in said for _ in range(day.count)])
    for day in others:
        expected[day.day] = expected.get(day.day, 0) + day.count
    assert gone
    assert by_day(gone) == expected
    assert removed == len(gone)
    present = {day.day: day.count for day in at_present}
    assert all(day.already <= present.get(day.day, 0) for day in said)
    assert await app.retention.apreview(kind) == []


async def test_a_preview_leaves_everything_as_it_is(
    app: Mainspring, connection: psycopg.Connection
):
    fill(connection)
    before = {kind: found(connection, kind) for kind in IDS}

    days = await app.retention.apreview()

    assert {day.kind for day in days} == set(RetentionKind)
    assert all(day.already == day.count > 0 for day in days)
    assert {kind: found(connection, kind) for kind in IDS} == before


async def test_the_audit_is_kept_for_two_years(
    connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    for at in (NOW - 730 * DAY - timedelta(hours=1), NOW - 730 * DAY + timedelta(hours=1)):
        insert(
            connection,
            "audit",
            at=at,
            tenant_id="default",
            actor="ann",
            action="update",
            noun="thing",
            subject="x",
        )

    await Cleanup(cleaning)._pass_history()

    assert len(found(connection, "audit")) == 1


async def test_without_a_policy_the_audit_is_kept_for_ever(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    fill(connection)
    await app.retention.aunset("audit")

    assert await prune(cleaning, "audit") == 0
    assert await app.retention.apreview("audit") == []


async def test_the_policy_of_a_tenant_wins_in_both_directions(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    fill(connection)
    await app.retention.aset("events", keep=100 * DAY)
    await app.retention.aset("events", keep=200 * DAY, tenant="acme")
    await app.retention.aset("slots", keep=200 * DAY)
    await app.retention.aset("slots", keep=100 * DAY, tenant="acme")

    await prune(cleaning, "events")
    await prune(cleaning, "slots")

    kept = connection.execute(
        "select tenant_id, count(*) from mainspring.events group by 1 order by 1"
    ).fetchall()
    slots = connection.execute(
        "select tenant_id, count(*) from mainspring.slots join mainspring.schedules"
        " using (schedule_id) group by 1 order by 1"
    ).fetchall()
    assert kept == [("acme", 20), ("default", 10)]
    assert slots == [("acme", 10), ("default", 20)]


async def test_a_slot_stays_until_its_run_has_ended_however_short_the_policy(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    insert_definition(connection, "work")
    insert(connection, "schedules", tenant_id="default", name="s", definition="work", cron="@daily")
    connection.execute(
        "insert into mainspring.slots (schedule_id, scheduled_for, outcome, job_id)"
        " select schedule_id, now() - interval '3 days', 'enqueued', 7 from mainspring.schedules"
    )
    await app.retention.aset("slots", keep=DAY)
    slots = pruner(cleaning, "slots")

    assert await app.retention.apreview("slots") == []
    assert await slots.prune() == 0
    connection.execute("update mainspring.slots set run_state = 'succeeded'")
    assert len(await app.retention.apreview("slots")) == 1
    assert await pruner(cleaning, "slots").prune() == 1


async def test_a_preview_leaves_out_parents_of_live_jobs_and_what_was_set_aside(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    ended = NOW - 50 * DAY
    parent, aside, past = (
        insert_job(connection, JobState.FAILED, finished_at=ended) for _ in range(3)
    )
    live = insert_job(connection, JobState.QUEUED)
    insert(connection, "dependencies", job_id=live, parent_id=parent, outcome="failed")
    insert(
        connection,
        "set_aside",
        duty="prune_jobs",
        key=aside,
        tries=1,
        reason="wrong",
        again_at=NOW + DAY,
    )

    (day,) = await app.retention.apreview("jobs")
    assert day.count == 1
    assert await prune(cleaning, "jobs") == 1
    assert set(found(connection, "jobs")) == {parent, aside}
    assert past not in found(connection, "jobs")


async def test_a_pass_goes_on_where_the_last_one_ended_until_a_policy_changes(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    fill(connection)
    events = pruner(cleaning, "events")
    assert await events.prune() > 0
    insert(
        connection,
        "events",
        tenant_id="default",
        name="x",
        context=psycopg.types.json.Jsonb({}),
        handled_at=NOW - 500 * DAY,
    )

    assert await events.prune() == 0
    await app.retention.aset("events", keep=31 * DAY, tenant="acme")
    assert await events.prune() == 1


async def test_of_many_processes_one_removes(
    app: Mainspring, connection: psycopg.Connection, cleaning: ReconnectingConnection
):
    fill(connection)
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtext('mainspring.prune_audit'))")
        with pytest.raises(CleanupTaken):
            await prune(cleaning, "audit")

    assert await prune(cleaning, "audit") > 0


async def test_policies_do_not_reach_jobs_of_the_previous_release(
    app: Mainspring, connection: psycopg.Connection
):
    """It takes all rows of mainspring.retention for policies of jobs."""
    before = connection.execute(
        "select tenant_id, state, keep from mainspring.retention"
    ).fetchall()

    for kind in ("audit", "slots", "events"):
        await app.retention.aset(kind, keep=DAY)

    now = connection.execute("select tenant_id, state, keep from mainspring.retention").fetchall()
    assert now == before


async def test_a_change_is_in_the_audit(app: Mainspring, connection: psycopg.Connection):
    await app.retention.aset("jobs", keep=DAY, state="failed", by="ann")
    await app.retention.aset("jobs", keep=2 * DAY, state="failed", by="ann")
    await app.retention.aset("jobs", keep=2 * DAY, state="failed", by="bob")
    await app.retention.aunset("jobs", state="failed", by="cyd")
    await app.retention.aset("slots", keep=DAY, tenant="default", by="ann")

    shown = connection.execute(
        "select tenant_id, actor, action, subject, before ->> 'keep', after ->> 'keep'"
        " from mainspring.audit where noun = 'retention' order by audit_id"
    ).fetchall()
    assert shown == [
        ("", "ann", "create", "jobs:failed", None, "1 day"),
        ("", "ann", "update", "jobs:failed", "1 day", "2 days"),
        ("", "cyd", "delete", "jobs:failed", "2 days", None),
        ("default", "ann", "create", "slots", None, "1 day"),
    ]


async def test_a_policy_that_is_not_there_cannot_be_removed(app: Mainspring):
    with pytest.raises(RetentionNotFound, match="for all tenants for slots"):
        await app.retention.aunset("slots")
    with pytest.raises(RetentionNotFound, match="of tenant acme for jobs in state failed"):
        await app.retention.aunset("jobs", tenant="acme", state="failed")
