"""Upgrades: functions reach a database without a migration, and never go back to older ones."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mainspring.db import migrate
from mainspring.db.connect import connect
from mainspring.domain.errors.database import (
    DatabaseError,
    FunctionsOutdated,
    SchemaOutdated,
    SchemaUnreleased,
)
from tests.support.databases import empty_database, role
from tests.support.programs import FUNCTIONS, NEXT, VERSION, become, later_migration

ADDED = "create or replace function mainspring.added() returns int language sql as 'select {}';"
CHANGED_VIEW = "create or replace view mainspring.audit_status as"


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


def execute(url: str, sql: str, *params: object) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


async def check(url: str) -> None:
    async with await connect(url, name="test") as connection:
        await migrate.check(connection)


def added(url: str) -> object:
    return execute(url, "select mainspring.added()")[0][0]


def installed(url: str) -> tuple[object, ...]:
    return execute(url, "select version, digest from mainspring.installed_functions")[0]


def locked_objects(url: str) -> dict[object, object]:
    """Views and triggers, each with the transaction that last replaced it."""
    rows = execute(
        url,
        "select 'view ' || relname, (select max(r.xmin::text) from pg_rewrite as r"
        " where ev_class = c.oid) from pg_class as c"
        " where relnamespace = 'mainspring'::regnamespace and relkind = 'v' union all "
        "select 'trigger ' || tgname || tgrelid, t.xmin::text from pg_trigger as t",
    )
    return {row[0]: row[1] for row in rows}


async def test_changed_functions_are_installed_without_a_migration(database_url, monkeypatch):
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)

    changes = await migrate.upgrade(database_url)

    assert (changes.migrations, changes.has_functions) == ([], True)
    assert added(database_url) == 1
    assert installed(database_url) == (VERSION + 1, migrate.own_functions().digest)
    await check(database_url)


async def test_a_program_refuses_functions_older_than_its_own(database_url, monkeypatch):
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)

    with pytest.raises(FunctionsOutdated, match="run `mainspring migrate`") as caught:
        await check(database_url)

    assert (caught.value.found, caught.value.expected) == (VERSION, VERSION + 1)


async def test_other_functions_under_the_same_version_are_refused_and_installed(
    database_url, monkeypatch
):
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)])

    with pytest.raises(FunctionsOutdated, match="not those of this program"):
        await check(database_url)
    assert (await migrate.upgrade(database_url)).has_functions

    await check(database_url)


async def test_two_programs_in_turn_leave_the_newer_functions(database_url, monkeypatch):
    for _ in range(2):
        become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(2)], version=VERSION + 2)
        await migrate.upgrade(database_url)
        await check(database_url)
        become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)

        assert not await migrate.upgrade(database_url)

        await check(database_url)
        assert added(database_url) == 2
        assert installed(database_url)[0] == VERSION + 2


async def test_an_older_program_goes_on_beside_a_migration_that_works_with_it(
    database_url, monkeypatch
):
    migration = later_migration("alter table mainspring.jobs add column later text;")
    become(monkeypatch, migration=migration, version=VERSION + 1)
    assert await migrate.migrate(database_url) == [migration]
    monkeypatch.undo()

    assert await migrate.migrate(database_url) == []

    await check(database_url)
    newest = execute(database_url, "select max(number) from mainspring.migrations")
    assert newest == [(NEXT,)]


async def test_a_newer_program_waits_for_its_migration(database_url, monkeypatch):
    become(monkeypatch, migration=later_migration("select 1;"))

    with pytest.raises(SchemaOutdated, match=f"this program needs {NEXT}"):
        await check(database_url)


async def test_views_and_triggers_that_have_not_changed_are_left_alone(database_url, monkeypatch):
    before = locked_objects(database_url)
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)

    assert await migrate.upgrade(database_url)

    assert locked_objects(database_url) == before
    assert len(before) > 30


async def test_a_view_that_has_changed_is_replaced_alone(database_url, monkeypatch):
    before = locked_objects(database_url)
    changed = [text.replace(CHANGED_VIEW, f"{CHANGED_VIEW} -- changed\n") for text in FUNCTIONS]
    become(monkeypatch, functions=changed, version=VERSION + 1)

    assert await migrate.upgrade(database_url)

    after = locked_objects(database_url)
    assert {name for name in after if after[name] != before[name]} == {"view audit_status"}


async def test_a_view_that_was_dropped_is_made_again_by_the_next_change(database_url, monkeypatch):
    execute(database_url, "drop view mainspring.audit_status")
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)

    await migrate.upgrade(database_url)

    assert execute(database_url, "select count(*) from mainspring.audit_status") == [(0,)]


async def test_grants_outlive_a_migration_that_drops_what_they_are_on(database_url, monkeypatch):
    drops = "drop function mainspring.enqueue; drop view mainspring.audit_status;"
    become(monkeypatch, migration=later_migration(drops))
    with role(database_url) as caller:
        execute(database_url, f"grant execute on function mainspring.enqueue to {caller}")
        execute(database_url, f"grant select on mainspring.audit_status to {caller}")

        await migrate.migrate(database_url)

        rights = execute(
            database_url,
            "select has_function_privilege(%s, 'mainspring.enqueue'::regproc, 'execute'),"
            " has_table_privilege(%s, 'mainspring.audit_status', 'select'),"
            " has_table_privilege(%s, 'mainspring.job_status', 'select')",
            *[caller] * 3,
        )
    assert rights == [(True, True, False)]
    assert execute(database_url, "select count(*) from mainspring.grants_to_restore") == [(0,)]


async def test_an_upgrade_that_fails_between_two_migrations_keeps_the_grants(
    database_url, monkeypatch
):
    drops = later_migration("drop function mainspring.enqueue;")
    broken = migrate.Migration(NEXT + 1, "broken", "-- works with: 0001\nselect 1 / 0;")
    become(monkeypatch, migration=drops)
    both = [*migrate.migrations(), broken]
    with role(database_url) as caller:
        execute(database_url, f"grant execute on function mainspring.enqueue to {caller}")
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "migrations", lambda: both)
            with pytest.raises(psycopg.errors.DivisionByZero):
                await migrate.migrate(database_url)
        missing = execute(database_url, "select to_regproc('mainspring.enqueue')")

        mended = migrate.Migration(NEXT + 1, "mended", "-- works with: 0001\nselect 1;")
        monkeypatch.setattr(migrate, "migrations", lambda: [*both[:-1], mended])
        assert await migrate.migrate(database_url) == [mended]

        right = "select has_function_privilege(%s, 'mainspring.enqueue'::regproc, 'execute')"
        assert execute(database_url, right, caller) == [(True,)]
    assert missing == [(None,)]


async def test_a_migration_that_was_edited_after_it_was_applied_is_refused(database_url):
    execute(database_url, "update mainspring.migrations set checksum = 'other' where number = 1")

    with pytest.raises(SchemaUnreleased, match="drop schema mainspring, mainspring_calls cascade"):
        await migrate.migrate(database_url)


async def test_a_schema_of_an_unknown_unreleased_version_is_refused_with_what_to_do(empty_url):
    execute(
        empty_url,
        "create schema mainspring create table migrations (number integer primary key, name text,"
        " checksum text, applied_at timestamptz default now())",
    )
    execute(
        empty_url, "insert into mainspring.migrations values (1, 'engine', 'c'), (12, 'x', 'd')"
    )

    for act in (migrate.migrate, check):
        with pytest.raises(SchemaUnreleased, match=r"unreleased version .*at migration 12"):
            await act(empty_url)

    tables = execute(empty_url, "select count(*) from pg_tables where schemaname = 'mainspring'")
    assert tables == [(1,)]


async def test_who_may_not_read_the_schema_is_told_to_connect_as_its_owner(database_url):
    with role(database_url) as guest:
        url = make_conninfo(database_url, user=guest, password=guest)

        for act in (check, migrate.migrate):
            with pytest.raises(DatabaseError, match=r"permission denied.*; connect as its owner"):
                await act(url)


async def test_who_may_read_but_not_change_is_told_who_may(database_url, monkeypatch):
    become(monkeypatch, functions=[*FUNCTIONS, ADDED.format(1)], version=VERSION + 1)
    with role(database_url) as guest:
        execute(database_url, f"grant usage on schema mainspring to {guest}")
        execute(database_url, f"grant select on all tables in schema mainspring to {guest}")
        url = make_conninfo(database_url, user=guest, password=guest)

        with pytest.raises(DatabaseError, match=r"may not change .* as the database's owner"):
            await migrate.migrate(url)


async def test_an_owner_of_both_schemas_needs_no_right_on_the_database(empty_url):
    with role(empty_url) as owner:
        for schema in ("mainspring", "mainspring_calls"):
            execute(empty_url, f"create schema {schema} authorization {owner}")
        url = make_conninfo(empty_url, user=owner, password=owner)

        assert await migrate.migrate(url) == migrate.migrations()

        await check(url)


async def test_what_others_built_on_a_dropped_view_is_named(database_url, monkeypatch):
    become(monkeypatch, migration=later_migration("drop view mainspring.audit_status;"))
    execute(database_url, "create view public.report as select * from mainspring.audit_status")

    with pytest.raises(DatabaseError, match="report depends on view"):
        await migrate.migrate(database_url)
