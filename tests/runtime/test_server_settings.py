"""A server, database or role with settings of its own: everything works as with the defaults."""

from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest
from psycopg import sql

from mainspring import Context, Mainspring
from mainspring.settings import load
from tests.support import events, schedules
from tests.support.api import serving
from tests.support.schedules import scheduling
from tests.support.waiting import await_until
from tests.support.workers import working

UNUSUAL = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "datestyle": "German",
    "default_transaction_isolation": "repeatable read",
    "extra_float_digits": "-10",
    "intervalstyle": "iso_8601",
    "row_security": "off",
    "search_path": "nowhere",
    "standard_conforming_strings": "off",
    "timezone": "Pacific/Kiritimati",
    "transform_null_equals": "on",
}
EVERY_SECOND = {"every": "1 second", "max_running": 1000, "overlap": "queue"}
MODES: dict[str, dict[str, object]] = {
    "direct": {},
    "through a pooler": {"use_pooler": True, "poll_seconds": 0.1},
}


@pytest.fixture
def unusual_url(database_url: str, connection: psycopg.Connection) -> str:
    """The URL of the test's database, which has unusual settings from now on."""
    for name, value in UNUSUAL.items():
        connection.execute(
            sql.SQL("alter database {} set {} = {}").format(
                sql.Identifier(connection.info.dbname), sql.Identifier(name), sql.Literal(value)
            )
        )
    return database_url


@pytest.fixture(params=MODES)
def flags(request: pytest.FixtureRequest) -> dict[str, object]:
    return MODES[request.param]


async def test_jobs_run(unusual_url: str, connection: psycopg.Connection, flags):
    async with Mainspring(settings=load(database_url=unusual_url, **flags)) as app:

        @app.job(timeout=timedelta(seconds=30), rate="100/s")
        async def note(ctx: Context, number: int) -> dict[str, object]:
            async with ctx.transaction() as own:
                ((delay,),) = await (await own.execute("select interval '90 minutes'")).fetchall()
            return {"number": number, "minutes": delay.total_seconds() / 60}

        async with working(app, **flags):
            later = await app.aenqueue("note", {"number": 2}, delay=timedelta(seconds=0.2))
            many = await app.aenqueue_many("note", [{"number": number} for number in range(3)])
            handle = await app.aenqueue("note", {"number": 1}, tags=["a\\b", "NULL"])
            assert await handle.aresult(timeout=10) == {"number": 1, "minutes": 90}
            assert await later.aresult(timeout=10) == {"number": 2, "minutes": 90}
            await await_until(lambda: _succeeded(connection) == len(many) + 2)
        job = await handle.ajob()
        assert (job.tags, job.attempt) == (("a\\b", "NULL"), 1)


def test_blocking_callers_work(unusual_url: str, connection: psycopg.Connection, flags):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    with Mainspring(settings=load(database_url=unusual_url, **flags)) as app:
        app.tenants.create("acme")
        made = app.enqueue("work", {}, delay=timedelta(hours=1), tenant_id="acme")
        assert app.jobs.list(tenant_id="acme")[0].id == made.id


def test_plain_sql_works_with_the_settings_of_its_caller(
    unusual_url: str, connection: psycopg.Connection
):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    # How PL/pgSQL reads a literal is the caller's choice, and PostgreSQL 19 removes the choice.
    options = "-c standard_conforming_strings=on"
    with psycopg.connect(unusual_url, options=options, autocommit=True) as own:
        schedules.insert_schedule(own, "nightly", cron="0 3 * * *", misfire_grace="90 minutes")
        events.insert_trigger(own, dedupe_window="90 minutes")
        events.emit(own, context={"a": 1})
        own.execute("select mainspring.enqueue('work', delay => interval '1 hour')")
        own.execute("select mainspring.trigger_scheduled_job('nightly')")
        own.execute("select mainspring.ensure_partitions(7)")


async def test_schedules_fire(unusual_url: str, connection: psycopg.Connection, flags):
    schedules.insert_schedule(connection, "plain", **EVERY_SECOND, misfire_grace="1 hour")
    schedules.insert_schedule(connection, "asked", **EVERY_SECOND, condition_sql="select true")
    schedules.insert_schedule(connection, "cron", cron="* * * * *")
    template = {"at": "{{slot_at}}"}
    schedules.insert_schedule(connection, "rendered", **EVERY_SECOND, payload=template)
    async with Mainspring(settings=load(database_url=unusual_url, **flags)) as app:
        async with scheduling(app):
            for name in ("plain", "asked", "rendered"):
                await await_until(partial(_has_fired, connection, name))
        state = await app.schedules.aget("plain")
        assert state.spec.misfire_grace == timedelta(hours=1)
        assert state.next_run_at is not None
        assert abs(state.next_run_at - datetime.now(UTC)) < timedelta(seconds=5)


async def test_events_become_jobs(unusual_url: str, connection: psycopg.Connection, flags):
    events.insert_trigger(connection, dedupe_window=timedelta(minutes=90))
    async with Mainspring(settings=load(database_url=unusual_url, **flags)) as app:
        async with scheduling(app):
            first = await app.aemit("provider.changed", {"a": 1.5})
            second = await app.aemit("provider.changed", {"a": 1.5})
            await await_until(lambda: events.outcomes(connection, first) == ["enqueued"])
            await await_until(lambda: events.outcomes(connection, second) == ["duplicate"])
        trigger = await app.triggers.aget("resync")
        assert trigger.trigger.dedupe_window == timedelta(minutes=90)


async def test_the_api_serves_tenants(unusual_url: str, connection: psycopg.Connection, flags):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    async with serving(unusual_url, **flags) as api:
        for tenant in ("default", "acme"):
            asked = {"definition": "work", "payload": {"of": tenant}, "delay": 3600}
            made = await api.post("/jobs", asked, role="admin", tenant=tenant)
            assert made.status_code == 201, made.text
            asked_for = "/jobs?include=payload"
            found = (await api.get(asked_for, role="viewer", tenant=tenant)).json()["items"]
            assert [job["payload"] for job in found] == [{"of": tenant}]
            due_in = datetime.fromisoformat(found[0]["scheduled_for"]) - datetime.now(UTC)
            assert timedelta(minutes=59) < due_in <= timedelta(hours=1)
            for path in ("/schedules", "/triggers", "/events", "/workers", "/limits", "/audit"):
                answer = await api.get(path, role="admin", tenant=tenant)
                assert answer.status_code == 200, answer.text


def _succeeded(connection: psycopg.Connection) -> int:
    query = "select count(*) from mainspring.jobs_history where state = 'succeeded'"
    ((count,),) = connection.execute(query).fetchall()
    return int(count)


def _has_fired(connection: psycopg.Connection, name: str) -> bool:
    return "enqueued" in schedules.outcomes(connection, name)
