"""Migrations: applied once, whoever asks and how often, and what they make is in schema.sql."""

import asyncio
import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mainspring.db import dump, embedded, migrate, statements
from mainspring.db.connect import connect
from mainspring.domain.errors.database import (
    DatabaseError,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)
from tests.support.databases import empty_database, role

MIGRATIONS = migrate.migrations()
NUMBERS = [migration.number for migration in MIGRATIONS]
QUERY_FILES = sorted((dump.FILE.parent / "queries").glob("*.sql"))
LATER = """
insert into mainspring.migrations (number, name, checksum, works_with) values (%s, 'later', '', %s)
"""
COLUMNS = """
select attname, format_type(atttypid, atttypmod), attcollation::regcollation::text, attnotnull
  from pg_attribute where attrelid = %s::regclass and attnum > 0 order by attnum
"""


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


async def check(url: str) -> None:
    async with await connect(url, name="test") as connection:
        await migrate.check(connection)


def execute(url: str, sql: str, *params: object) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def catalogue(url: str) -> list[tuple[object, ...]]:
    """Every object with the transaction that last touched it."""
    return execute(
        url,
        "select oid, xmin::text from pg_class where relnamespace = 'mainspring'::regnamespace "
        "union all "
        "select oid, xmin::text from pg_proc where pronamespace = 'mainspring'::regnamespace "
        "order by 1",
    )


def test_migrations_are_numbered_without_a_gap():
    assert list(range(1, len(NUMBERS) + 1)) == NUMBERS


@pytest.mark.parametrize("migration", MIGRATIONS, ids=str)
def test_every_migration_says_the_oldest_program_it_works_with(migration):
    assert 1 <= migration.works_with <= migration.number


def test_a_migration_that_does_not_say_it_is_refused():
    with pytest.raises(ValueError, match="0002 later has no line `-- works with: NNNN`"):
        assert migrate.Migration(2, "later", "-- works with 0001\nselect 1;").works_with


def test_a_comment_does_not_change_the_checksum_of_a_migration():
    plain = migrate.Migration(2, "later", "select 1;")
    explained = migrate.Migration(2, "later", "-- Why.\nselect\n    1; -- one")
    other = migrate.Migration(2, "later", "select 2;")

    assert plain.checksum == explained.checksum != other.checksum


@pytest.mark.parametrize("migration", MIGRATIONS, ids=str)
def test_every_index_says_which_statement_it_serves(migration):
    comments = re.findall(
        r"((?:^-- .*\n)*)^create (?:unique )?index (\w+)", migration.sql, re.MULTILINE
    )
    known = {each for path in QUERY_FILES for each in statements.load(path.stem)}
    known |= set(re.findall(r"(?:function|view) mainspring\.(\w+)", "".join(migrate.functions())))

    assert len(comments) == len(re.findall(r"^create .*index ", migration.sql, re.MULTILINE))
    for comment, index in comments:
        assert comment.startswith("-- Serves "), index
        assert known & set(re.findall(r"\w+", comment)), f"{index} serves nothing that exists"


def test_the_version_of_the_functions_is_that_of_the_checked_in_ones():
    assert dump.VERSION_FILE.read_text() == dump.version_text(), "run `make schema`"


async def test_migrating_an_empty_database_applies_everything(empty_url):
    applied = await migrate.migrate(empty_url)

    assert applied == MIGRATIONS
    await check(empty_url)
    recorded = execute(
        empty_url, "select number, name, checksum, works_with from mainspring.migrations"
    )
    assert recorded == [
        (each.number, each.name, each.checksum, each.works_with) for each in MIGRATIONS
    ]


async def test_migrating_again_changes_nothing(database_url):
    before = catalogue(database_url)

    assert await migrate.migrate(database_url) == []

    assert catalogue(database_url) == before


async def test_two_who_migrate_at_once_apply_it_once(empty_url):
    applied = await asyncio.gather(*(migrate.migrate(empty_url) for _ in range(3)))

    assert sorted(map(len, applied)) == [0, 0, len(MIGRATIONS)]
    await check(empty_url)


async def test_a_migration_that_fails_leaves_nothing_behind(empty_url):
    execute(empty_url, "create schema mainspring create table definitions ()")

    with pytest.raises(psycopg.errors.DuplicateTable):
        await migrate.migrate(empty_url)

    assert execute(empty_url, "select to_regclass('mainspring.jobs')") == [(None,)]
    assert execute(empty_url, "select count(*) from mainspring.migrations") == [(0,)]


async def test_the_lock_is_free_after_a_failure(empty_url):
    execute(empty_url, "create schema mainspring create table definitions ()")
    with pytest.raises(psycopg.errors.DuplicateTable):
        await migrate.migrate(empty_url)
    execute(empty_url, "drop table mainspring.definitions")

    assert await migrate.migrate(empty_url) == MIGRATIONS


async def test_a_database_at_this_programs_migration_passes(database_url):
    await check(database_url)


async def test_a_database_without_a_schema_is_missing_it(empty_url):
    with pytest.raises(SchemaMissing, match="run `mainspring migrate`"):
        await check(empty_url)


async def test_a_database_behind_is_outdated(database_url):
    execute(database_url, "delete from mainspring.migrations where number = %s", NUMBERS[-1])

    with pytest.raises(SchemaOutdated) as caught:
        await check(database_url)

    assert (caught.value.found, caught.value.expected) == (NUMBERS[-1] - 1, NUMBERS[-1])


@pytest.fixture
def newer_url(database_url: str) -> str:
    """A schema that no longer works with this program."""
    newer = NUMBERS[-1] + 1
    execute(database_url, LATER, newer, newer)
    return database_url


async def test_a_database_ahead_is_too_new(newer_url):
    with pytest.raises(SchemaTooNew, match="upgrade Mainspring") as caught:
        await check(newer_url)

    assert (caught.value.found, caught.value.expected) == (NUMBERS[-1] + 1, NUMBERS[-1])


async def test_a_database_ahead_is_not_migrated(newer_url):
    before = catalogue(newer_url)

    with pytest.raises(SchemaTooNew):
        await migrate.migrate(newer_url)

    assert catalogue(newer_url) == before


async def test_a_database_ahead_that_works_with_this_program_passes(database_url):
    execute(database_url, LATER, NUMBERS[-1] + 1, NUMBERS[-1])
    before = catalogue(database_url)

    await check(database_url)
    assert await migrate.migrate(database_url) == []

    assert catalogue(database_url) == before


async def test_who_may_not_create_a_schema_is_told_who_may(empty_url):
    with role(empty_url) as passer_by:
        url = make_conninfo(empty_url, user=passer_by, password=passer_by)
        with pytest.raises(DatabaseError, match="create schema mainspring authorization"):
            await migrate.migrate(url)


def test_schema_sql_is_what_the_migrations_make(database_url):
    server = execute(database_url, "show server_version")[0][0]
    if not str(server).startswith(embedded.MAJOR_VERSION):
        pytest.skip(f"the dump is made on PostgreSQL {embedded.MAJOR_VERSION}, not {server}")

    assert dump.FILE.read_text() == dump.dump(database_url), "run `make schema`"


def test_the_dump_does_not_depend_on_the_day(database_url):
    before = dump.dump(database_url)

    execute(database_url, "select mainspring.ensure_partitions(30)")

    assert dump.dump(database_url) == before
    assert "create table" in before.lower()


def test_a_dump_that_fails_says_why(empty_url):
    with pytest.raises(DatabaseError, match="no matching schemas were found"):
        dump.dump(empty_url)


def test_jobs_and_history_have_the_same_columns_in_the_same_order(connection):
    live = connection.execute(COLUMNS, ("mainspring.jobs",)).fetchall()
    # What a job that has ended no longer counts for, or is suspected of, is left out.
    own = {"limit_name", "limit_key", "suspected_at", "alone_fence", "begun_fence"}
    live = [column for column in live if column[0] not in own]

    assert connection.execute(COLUMNS, ("mainspring.jobs_history",)).fetchall() == live
    assert ("job_id", "bigint", "-", True) in live
