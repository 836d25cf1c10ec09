"""Tenants that are disabled, enabled and deleted with all they have."""

import asyncio
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.operations import operating
from tests.support.waiting import await_until
from tests.support.workers import working

OPERATOR = Role.OPERATOR
FILL = """
select mainspring.enqueue('work', tenant => 'zeta') from generate_series(1, 3);
select mainspring.enqueue('work', tenant => 'zeta', after => array[1]);
select mainspring.enqueue('work', tenant => 'zeta', approvals_needed => 1);
select mainspring.cancel(2, tenant => 'zeta');
select mainspring.emit('thing.happened', tenant => 'zeta');
select mainspring.enqueue_flow('flow', '[{"definition": "work", "payload": {}}]', 'zeta');
insert into mainspring.schedules (tenant_id, name, definition, cron)
values ('zeta', 'nightly', 'work', '0 2 * * *'), ('default', 'nightly', 'work', '0 2 * * *');
insert into mainspring.triggers (tenant_id, name, event, definition)
values ('zeta', 'on-thing', 'thing.*', 'work');
insert into mainspring.people (name, role, tenant_id, created_by)
values ('ann', 'admin', 'zeta', 'test');
select mainspring.enqueue('work');
"""
LEFT = """
select count(*) from mainspring.{} where tenant_id = 'zeta'
"""
NEXT_RUN = """
select next_run_at from mainspring.clocks join mainspring.schedules using (schedule_id)
 where tenant_id = 'zeta'
"""


@pytest.fixture
def filled(connection: psycopg.Connection, api: Api) -> psycopg.Connection:
    """A database in which the tenant zeta has one of each thing."""
    connection.execute("insert into mainspring.tenants (tenant_id) values ('zeta')")
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('work', 'python')"
        " on conflict do nothing"
    )
    connection.execute(FILL.encode())
    return connection


async def patched(api: Api, **changes: Any) -> dict[str, Any]:
    answer = await api.ask("PATCH", "/tenants/zeta", json=changes, role=OPERATOR)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_disabled_tenant_takes_nothing_and_starts_nothing(api: Api, filled):
    disabled = await patched(api, is_enabled=False)

    assert (disabled["is_enabled"], disabled["max_running"]) == (False, None)
    with pytest.raises(psycopg.Error, match="tenant is disabled: 'zeta'; enable it first"):
        filled.execute("select mainspring.enqueue('work', tenant => 'zeta')")
    with pytest.raises(psycopg.Error, match="tenant is disabled"):
        filled.execute("select mainspring.emit('thing.happened', tenant => 'zeta')")
    (waits,) = filled.execute(
        "select bool_and(waits_for = 'limit') from mainspring.jobs"
        " where tenant_id = 'zeta' and state = 'queued'"
    ).fetchall()
    assert waits == (True,)
    assert filled.execute(NEXT_RUN).fetchall() == [(None,)]
    filled.execute("update mainspring.schedules set cron = '0 4 * * *' where tenant_id = 'zeta'")
    assert filled.execute(NEXT_RUN).fetchall() == [(None,)]

    enabled = await patched(api, is_enabled=True)

    assert (enabled["is_enabled"], enabled["max_running"]) == (True, None)
    assert filled.execute(NEXT_RUN).fetchall() != [(None,)]
    filled.execute("select mainspring.enqueue('work', tenant => 'zeta')")
    actions = filled.execute(
        "select action from mainspring.audit where noun = 'tenant' and subject = 'zeta'"
        " order by audit_id"
    ).fetchall()
    assert actions == [("create",), ("disable",), ("enable",)]


async def test_the_audit_says_that_a_tenant_is_disabled_and_not_how_that_is_done(api: Api, filled):
    await patched(api, is_enabled=False)
    await patched(api, max_running=3)
    await patched(api, is_enabled=True)

    entries = filled.execute(
        "select action, before, after from mainspring.audit where noun = 'tenant'"
        " and subject = 'zeta' and action <> 'create' order by audit_id"
    ).fetchall()
    assert [(action, set(after)) for action, _, after in entries] == [
        ("disable", {"disabled_at"}),
        ("update", {"max_running"}),
        ("enable", {"disabled_at"}),
    ]
    assert entries[1][1:] == ({"max_running": None}, {"max_running": 3})


async def test_tokens_of_a_disabled_tenant_are_refused(api: Api):
    answers = []
    for is_enabled in (False, True):
        changes = {"is_enabled": is_enabled}
        await api.ask("PATCH", "/tenants/acme", json=changes, role=OPERATOR)
        answers.append(await api.get("/jobs", role=Role.ADMIN, tenant="acme"))

    assert [answer.status_code for answer in answers] == [401, 200]
    said = "the tenant 'acme' is disabled; ask an operator to enable it"
    assert answers[0].json()["detail"] == said


async def test_a_dry_run_counts_what_a_tenant_has_and_changes_nothing(api: Api, filled):
    answer = await api.ask("DELETE", "/tenants/zeta?dry_run=true", role=OPERATOR)

    assert answer.status_code == 200, answer.text
    assert answer.json()["job_id"] is None
    contents = answer.json()["contents"]
    assert (contents["live_jobs"], contents["finished_jobs"]) == (5, 1)
    assert (contents["schedules"], contents["triggers"], contents["events"]) == (1, 1, 1)
    assert (await api.get("/tenants/zeta", role=OPERATOR)).json()["is_enabled"] is True


async def test_a_tenant_is_deleted_with_all_it_has(api: Api, filled):
    answer = await api.ask("DELETE", "/tenants/zeta", role=OPERATOR)
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]

    async def ended() -> Any:
        job = (await api.get(f"/jobs/{job_id}", role=OPERATOR)).json()
        return job if job["finished_at"] else None

    async with operating(api):
        job = await await_until(ended, what="the tenant is deleted")

    assert job["state"] == "succeeded", job["last_error"]
    assert job["result"] == {"tenant": "zeta", "deleted": {"jobs": 6, "events": 1}}
    tables = filled.execute(
        "select c.relname from pg_class as c join pg_attribute as a on a.attrelid = c.oid"
        " where c.relnamespace = 'mainspring'::regnamespace and a.attname = 'tenant_id'"
        "   and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'audit'"
    ).fetchall()
    for (table,) in tables:
        assert filled.execute(LEFT.format(table).encode()).fetchone() == (0,), table
    assert (await api.get("/tenants/zeta", role=OPERATOR)).status_code == 404
    assert (await api.get("/jobs?tenant=zeta", role=OPERATOR)).status_code == 404
    assert filled.execute("select count(*) from mainspring.schedules").fetchone() == (1,)
    noted = filled.execute(
        "select action, actor from mainspring.audit where noun = 'tenant' and subject = 'zeta'"
        " order by audit_id"
    ).fetchall()
    assert [action for action, _ in noted] == ["create", "disable", "delete_requested", "delete"]
    assert len({actor for _, actor in noted[1:]}) == 1


async def test_the_default_tenant_stays(api: Api):
    for answer in (
        await api.ask("DELETE", "/tenants/default", role=OPERATOR),
        await api.ask("PATCH", "/tenants/default", json={"is_enabled": False}, role=OPERATOR),
    ):
        assert answer.status_code == 422, answer.text
        assert "default cannot be d" in answer.text
    refused = await api.ask("DELETE", "/tenants/default", role=Role.ADMIN)
    assert refused.status_code == 403


async def test_schedules_have_the_zone_of_their_tenant(api: Api, connection, database_url):
    changed = await api.ask("PATCH", "/tenants/acme", json={"zone": "Europe/Berlin"}, role=OPERATOR)
    assert changed.json()["zone"] == "Europe/Berlin"
    wrong = await api.post("/tenants", {"name": "bell", "zone": "Berlin"}, role=OPERATOR)
    assert "did you mean 'Europe/Berlin'?" in wrong.text
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('work', 'python')"
        " on conflict do nothing"
    )
    body = {"name": "over rest", "definition": "work", "cron": "0 2 * * *"}

    answer = await api.post("/schedules", body, role=Role.ADMIN, tenant="acme")
    connection.execute(
        "insert into mainspring.schedules (tenant_id, name, definition, cron)"
        " values ('acme', 'in sql', 'work', '0 2 * * *')"
    )
    async with Mainspring(database_url) as app:
        await app.schedules.acreate("in python", "work", cron="0 2 * * *", tenant_id="acme")
        await app.schedules.acreate(
            "own", "work", cron="0 2 * * *", tenant_id="acme", zone="Asia/Tokyo"
        )

    assert answer.status_code == 201, answer.text
    zones = connection.execute("select name, zone from mainspring.schedules").fetchall()
    assert dict(zones) == {
        "over rest": "Europe/Berlin",
        "in sql": "Europe/Berlin",
        "in python": "Europe/Berlin",
        "own": "Asia/Tokyo",
    }


async def test_the_python_interface_deletes_too(filled, database_url):
    async with Mainspring(database_url) as app:
        await app.tenants.aupdate("zeta", max_running=7)
        disabled = await app.tenants.adisable("zeta")
        assert (disabled.is_enabled, disabled.max_running) == (False, 7)
        assert (await app.tenants.aenable("zeta")).max_running == 7
        assert (await app.tenants.acontents("zeta")).live_jobs == 5
        job_id = await app.tenants.adelete("zeta")

        async with working(app, queues=("mainspring",), concurrency=1):
            await await_until(lambda: is_gone(filled), what="the tenant is deleted")
    assert job_id > 0


async def is_gone(connection: psycopg.Connection) -> bool:
    found = connection.execute("select from mainspring.tenants where tenant_id = 'zeta'")
    return found.fetchone() is None


async def test_running_jobs_are_stopped_and_deleted_too(api: Api, filled, database_url):
    started = asyncio.Event()

    async with Mainspring(database_url) as app:

        @app.job(queue="mine")
        async def sleeps() -> None:
            started.set()
            await asyncio.sleep(600)

        async with working(app, queues=("mine",), concurrency=1, cancel_grace_seconds=0.1):
            await sleeps.options(tenant_id="zeta").aenqueue()
            await asyncio.wait_for(started.wait(), 30)
            answer = await api.ask("DELETE", "/tenants/zeta", role=OPERATOR)
            assert answer.status_code == 202, answer.text
            async with operating(api):
                await await_until(lambda: is_gone(filled), what="the tenant is deleted")
