"""Row-level security: what the role of the API reaches in the database, with no service between."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors, sql

from mainspring import settings
from mainspring.db.database import Database
from mainspring.domain.access.tokens import digest
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import TenantId
from mainspring.services import tokens
from mainspring.store.jobs import enqueue_as

OF_TENANTS = """
select c.relname, c.relkind::text from pg_class as c
  join pg_attribute as a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
 where c.relnamespace = 'mainspring'::regnamespace and c.relkind in ('r', 'p', 'v')
   and not c.relispartition
 order by c.relname
"""
# What someone else could have called with the owner's rights.
DEFINERS = """
select p.proname, p.proargnames, p.pronargs, p.oid::regprocedure::text
  from pg_proc as p
 where p.pronamespace = 'mainspring'::regnamespace and p.prosecdef
   and p.prorettype <> 'trigger'::regtype
   -- Definitions, what workers declare of them, and functions to run belong to no tenant.
   and p.proname not in ('other_schemas', 'check_function_name')
   and has_function_privilege('pg_database_owner', p.oid, 'execute')
 order by p.proname
"""
SEEK = """
select cardinality(job_ids) from mainspring.seek_jobs(
    'live', '{queued}', '{}', 'default', 0, 1000, null, 100, 100)
"""
ARGUMENTS = {
    "definition": "'work'",
    "payloads": "array['{}'::jsonb]",
    "job_id": "(select min(job_id) from jobs_of_acme)",
    "flow_id": "(select min(flow_id) from flows_of_acme)",
    "event_id": "(select min(event_id) from events_of_acme)",
    "name": "'nightly'",
    "reason": "'why'",
    "steps": """'[{"definition": "work", "payload": {}}]'""",
    "action": "'cancel'",
    "asked": "'{}'",
    "person": "1",
    "session": "null",
    "prefix": "'msk_a'",
    "digest": "sha256('x')",
    "life": "'1 hour'",
    "ends_by": "null",
    "is_link": "true",
    "section": "'live'",
    "states": "'{queued}'",
    "behind": "0",
    "up_to": "1000",
    "ended_before": "null",
    "most_seen": "10",
    "most_found": "10",
    "kind": "'jobs'",
    "state": "'failed'",
    "keep": "'1 day'",
    "fallback": "'1 day'",
}


@pytest.fixture
def filled(database_url: str, connection: psycopg.Connection) -> str:
    """A database in which default and acme have one of each thing; its URL."""
    database = Database(settings.load(database_url=database_url))
    asyncio.run(open_to_app(database))
    connection.execute(
        """
        insert into mainspring.tenants (tenant_id) values ('acme');
        insert into mainspring.definitions (key, kind) values ('work', 'python');
        select set_config('mainspring.creator', 'someone', false);
        do $$
        declare
            whose text;
            job bigint;
        begin
            foreach whose in array array['default', 'acme'] loop
                job := mainspring.enqueue('work', tenant => whose, idempotency_key => 'k');
                perform mainspring.enqueue('work', tenant => whose, after => array[job]);
                perform mainspring.enqueue('work', tenant => whose, approvals_needed => 1);
                perform mainspring.cancel(
                    mainspring.enqueue('work', tenant => whose), tenant => whose);
                perform mainspring.enqueue_flow(
                    'flow', '[{"definition": "work", "payload": {}}]', whose);
                perform mainspring.emit('thing.happened', tenant => whose);
                insert into mainspring.schedules (tenant_id, name, definition, cron)
                values (whose, 'nightly', 'work', '0 2 * * *');
                insert into mainspring.triggers (tenant_id, name, event, definition)
                values (whose, 'on-thing', 'thing.*', 'work');
                insert into mainspring.people (name, role, tenant_id, created_by)
                values (whose || '-ann', 'admin', whose, 'test');
                insert into mainspring.attempts (
                    job_id, fence, worker_id, started_at, finished_at, number, status)
                select job_id, 1, 1, now(), now(), 1, 'failed' from mainspring.jobs
                 where tenant_id = whose;
            end loop;
        end
        $$;
        create table jobs_of_acme as select job_id from mainspring.jobs
         where tenant_id = 'acme' and state = 'awaiting_approval';
        create table flows_of_acme as
            select flow_id from mainspring.flows where tenant_id = 'acme';
        create table events_of_acme as
            select event_id from mainspring.events where tenant_id = 'acme';
        grant select on jobs_of_acme, flows_of_acme, events_of_acme to pg_database_owner;
        """
    )
    return database_url


async def open_to_app(database: Database) -> None:
    await tokens.open_to_app(database)
    await database.aclose()


def test_many_processes_may_start_at_once(database_url: str):
    async def open_at_once() -> None:
        known = settings.load(database_url=database_url)
        await asyncio.gather(*(open_to_app(Database(known)) for _ in range(8)))

    asyncio.run(open_at_once())


@contextmanager
def acting(url: str, *, tenant: str = "default", member: str = "") -> Iterator[psycopg.Connection]:
    """A connection as a request of the API has it."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute(
            "select set_config('role', 'pg_database_owner', true),"
            " set_config('mainspring.tenant', %s, true),"
            " set_config('mainspring.member', %s, true),"
            " set_config('mainspring.actor', 'test', true)",
            (tenant, member),
        )
        yield connection


def seen(connection: psycopg.Connection, name: str) -> set[str] | None:
    """Whose rows are seen; None if nothing may be read."""
    query = sql.SQL("select distinct tenant_id from {}").format(sql.Identifier("mainspring", name))
    try:
        with connection.transaction():
            return {row[0] for row in connection.execute(query)}
    except errors.InsufficientPrivilege:
        return None


def refusal(connection: psycopg.Connection, statement: str) -> str | None:
    """The SQLSTATE that a statement is refused with; None if it is not."""
    try:
        with connection.transaction():
            connection.execute(statement)  # type: ignore[call-overload, unused-ignore]
    except psycopg.Error as error:
        return error.sqlstate
    return None


def test_every_table_of_tenants_is_isolated(filled: str, connection: psycopg.Connection):
    open_tables = connection.execute(
        "select c.relname from pg_class as c join pg_attribute as a on a.attrelid = c.oid"
        " where c.relnamespace = 'mainspring'::regnamespace and c.relkind in ('r', 'p')"
        " and a.attname = 'tenant_id' and not c.relispartition and not c.relrowsecurity"
    ).fetchall()

    # Of dispatches and the like only views can be read, which ask by themselves.
    assert open_tables == []


def test_nothing_of_another_tenant_is_seen(filled: str, connection: psycopg.Connection):
    names = [name for name, _ in connection.execute(OF_TENANTS)]
    with acting(filled) as caller:
        found = {name: seen(caller, name) for name in names}

    assert {name: whose for name, whose in found.items() if whose and whose - {"default"}} == {}
    # The look itself works: what is the caller's own is there.
    for name in ("job_status", "schedule_status", "event_status", "flow_status", "person_status"):
        assert found[name] == {"default"}


def test_views_without_a_tenant_hold_only_what_belongs_to_visible_jobs(filled: str):
    with acting(filled) as caller:
        hidden = caller.execute(
            "select count(*) from mainspring.attempt_status as a"
            " where not exists (select from mainspring.job_status as j where j.job_id = a.job_id)"
        ).fetchone()
        own = caller.execute("select count(*) from mainspring.attempt_status").fetchone()
        strange = caller.execute(
            "select count(*) from mainspring.dependency_status where tenant_id <> 'default'"
        ).fetchone()

    assert (hidden, strange) == ((0,), (0,))
    assert own != (0,)


def test_functions_with_the_rights_of_the_owner_refuse_another_tenant(
    filled: str, connection: psycopg.Connection
):
    functions = connection.execute(DEFINERS).fetchall()
    assert len(functions) > 8
    for name, arguments, count, signature in functions:
        assert "tenant" in arguments[:count], f"{signature} knows no tenant to compare"
        given = [f"{each} => {ARGUMENTS[each]}" for each in arguments[:count] if each in ARGUMENTS]
        given.append("tenant => 'acme'")
        call = f"select mainspring.{name}({', '.join(given)})"
        with acting(filled) as caller:
            assert refusal(caller, call) in ("MS030", "MS070", "MS081"), call


@pytest.mark.parametrize(
    "statement",
    [
        (
            "insert into mainspring.schedules (tenant_id, name, definition, cron)"
            " values ('acme', 'mine', 'work', '0 2 * * *')"
        ),
        (
            "insert into mainspring.triggers (tenant_id, name, event, definition)"
            " values ('acme', 'mine', 'x', 'work')"
        ),
        (
            "insert into mainspring.people (tenant_id, name, role, created_by)"
            " values ('acme', 'eve', 'admin', 'eve')"
        ),
        "insert into mainspring.people (name, role, created_by) values ('eve', 'operator', 'eve')",
        (
            "insert into mainspring.tokens (tenant_id, name, role, prefix, digest, created_by)"
            " values ('acme', 'eve', 'admin', 'x', sha256('x'), 'eve')"
        ),
        (
            "insert into mainspring.tokens (name, role, prefix, digest, created_by)"
            " values ('eve', 'operator', 'x', sha256('x'), 'eve')"
        ),
        "insert into mainspring.jobs (tenant_id, definition) values ('acme', 'work')",
        "update mainspring.schedules set tenant_id = 'acme'",
        "insert into mainspring.definitions (key, kind) values ('evil', 'sql')",
        "update mainspring.definitions set is_active = false",
        "update mainspring.tenants set weight = 1000",
        "insert into mainspring.tenants (tenant_id) values ('mine')",
        "delete from mainspring.audit",
        "update mainspring.retention set keep = '0'",
        "delete from mainspring.record_retention",
        "update mainspring.jobs set state = 'queued'",
        "delete from mainspring.jobs_history",
        "select mainspring.set_limit('x', concurrency => 0)",
        "select mainspring.change_jobs('delete', '{1}', '{queued}', 'acme', 'x', 'eve', false)",
        "select mainspring.call_function('mainspring.actor', 'postgres', '{}')",
        "select mainspring.enter(sha256('x'))",
        "select * from mainspring.bearers",
        "select mainspring.open_to_app()",
    ],
)
def test_what_is_not_the_callers_cannot_be_written(filled: str, statement: str):
    with acting(filled) as caller, pytest.raises(errors.InsufficientPrivilege):
        caller.execute(statement)


@pytest.mark.parametrize("table", ["schedules", "triggers", "people", "tokens"])
def test_changes_without_a_tenant_touch_only_the_callers_rows(filled: str, table: str):
    with acting(filled) as caller:
        changed = caller.execute(
            sql.SQL(
                "update mainspring.{} set tenant_id = tenant_id where tenant_id = 'acme'"
            ).format(sql.Identifier(table))
        )

    assert changed.rowcount == 0


def test_a_member_sees_only_what_it_created(filled: str):
    with acting(filled, member="nobody") as caller:
        others = caller.execute("select count(*) from mainspring.job_status").fetchone()
        flows = caller.execute("select count(*) from mainspring.flow_status").fetchone()
        sought = caller.execute(SEEK).fetchone()
    with acting(filled, member="someone") as caller:
        own = caller.execute("select count(*) from mainspring.job_status").fetchone()
        found = caller.execute(SEEK).fetchone()

    assert (others, flows, sought) == ((0,), (0,), (0,))
    assert (own, found) == ((5,), (2,))


def test_an_operation_of_a_member_is_about_its_own_jobs_whatever_it_asks(
    filled: str, connection: psycopg.Connection
):
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('mainspring.bulk', 'python')"
    )
    with acting(filled, member="eve") as caller:
        (job_id,) = caller.execute(
            """select mainspring.start_bulk('delete', '{"created_by": "someone"}', 'mine')"""
        ).fetchone() or (0,)
    (payload,) = connection.execute(
        "select payload from mainspring.jobs where job_id = %s", (job_id,)
    ).fetchone() or ({},)

    assert payload == {
        "action": "delete",
        "filter": {"created_by": "eve"},
        "reason": "mine",
        "tenant": "default",
        "creator": "eve",
        "actor": "test",
    }


def test_whoever_is_not_the_api_is_not_asked(filled: str, connection: psycopg.Connection):
    whose = {row[0] for row in connection.execute("select tenant_id from mainspring.job_status")}

    assert whose == {"default", "acme"}


def test_whoever_enqueues_by_a_token_is_let_in_before_anything_is_written(
    filled: str, connection: psycopg.Connection
):
    text = "msk_aaaaaaaa_" + "a" * 43
    connection.execute(
        "insert into mainspring.tokens (tenant_id, name, role, prefix, digest, created_by)"
        " values ('default', 'ci', 'member', 'x', %s, 'test')",
        (digest(text),),
    )
    asked = [
        enqueue_as(digest(shown), "work", "{}", options=EnqueueOptions(tenant_id=TenantId(whose)))
        for shown, whose in ((text, "default"), (text, "acme"), ("msk_other", "default"))
    ]
    before = connection.execute("select max(job_id) from mainspring.jobs").fetchone()

    ((job_id, *_),) = connection.execute(asked[0].sql, asked[0].params).fetchall()
    states = []
    for call in asked[1:]:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(call.sql, call.params)
        states.append(refused.value.sqlstate)

    assert states == ["MS081", "MS080"]
    made = connection.execute(
        "select job_id, created_by from mainspring.jobs where job_id > %s", before
    ).fetchall()
    assert made == [(job_id, "ci")]
