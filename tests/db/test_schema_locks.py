"""Upgrades beside others who hold locks: they wait a little, say for whom, and stop nobody."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from mainspring.db import migrate
from mainspring.domain.errors.database import FunctionsOutdated, SchemaLocked
from tests.support.commands import mainspring
from tests.support.programs import FUNCTIONS, NEXT, VERSION, become, later_migration
from tests.support.waiting import await_until

ADDS_A_COLUMN = later_migration("alter table mainspring.jobs add column later text;")
LOCKS_TWO_TABLES = later_migration(
    "alter table mainspring.tenants add column later text;"
    "alter table mainspring.jobs add column later text;"
)
HAS_COLUMN = """
select exists (select from pg_attribute
 where attrelid = 'mainspring.jobs'::regclass and attname = 'later')
"""
WAITS = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = %s"
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
ENQUEUE = "insert into mainspring.jobs (definition) values ('work')"


@pytest.fixture
def report(database_url: str) -> Iterator[psycopg.Connection]:
    """A transaction that has read jobs, and goes on."""
    with psycopg.connect(database_url, application_name="nightly report") as connection:
        connection.execute("select count(*) from mainspring.jobs")
        yield connection


def has_column(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(HAS_COLUMN).fetchone() == (True,)


async def test_a_migration_gives_up_and_names_who_blocks_it(database_url, report, monkeypatch):
    become(monkeypatch, migration=ADDS_A_COLUMN)

    with pytest.raises(SchemaLocked) as caught:
        await migrate.upgrade(database_url, tries=1)

    said = str(caught.value)
    assert said.startswith(f"migration {NEXT:04} later could not acquire its locks in 1 try of 2 s")
    assert f"pid {report.info.backend_pid} (application 'nightly report', user " in said
    assert "in a transaction for " in said
    assert not has_column(database_url)


async def test_a_migration_is_tried_again_until_the_lock_is_free(database_url, report, monkeypatch):
    become(monkeypatch, migration=ADDS_A_COLUMN)
    said: list[str] = []

    def release(sentence: str) -> None:
        said.append(sentence)
        report.rollback()

    changes = await migrate.upgrade(database_url, tries=3, report=release)

    assert changes.migrations == [ADDS_A_COLUMN]
    assert has_column(database_url)
    assert len(said) == 1
    assert "'nightly report'" in said[0]
    assert said[0].endswith("attempt 1 of 3, retrying in 1 s")


async def test_others_wait_for_a_blocked_migration_only_as_long_as_one_try(
    database_url, report, monkeypatch
):
    become(monkeypatch, migration=ADDS_A_COLUMN)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:

        async def waiting() -> bool:
            row = await (await other.execute(WAITS, (other.info.dbname,))).fetchone()
            return row is not None and row[0] > 0

        upgrade = asyncio.create_task(migrate.upgrade(database_url, tries=2))
        await await_until(waiting, what="the migration waits for its lock")
        started = time.monotonic()
        await other.execute(ENQUEUE)
        waited = time.monotonic() - started
        assert not upgrade.done()
        report.rollback()
        await upgrade

    assert waited < 10
    assert has_column(database_url)


async def test_a_migration_gives_up_its_locks_before_anyone_is_ended_for_a_deadlock(
    database_url, monkeypatch
):
    become(monkeypatch, migration=LOCKS_TWO_TABLES)
    async with (
        await psycopg.AsyncConnection.connect(database_url) as caller,
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other,
    ):

        async def waiting() -> bool:
            row = await (await other.execute(WAITS, (other.info.dbname,))).fetchone()
            return row is not None and row[0] > 0

        said: list[str] = []
        # So that it is the migration that would notice a deadlock.
        await caller.execute("set deadlock_timeout = '1min'")
        await caller.execute("select from mainspring.jobs")
        upgrade = asyncio.create_task(migrate.upgrade(database_url, tries=3, report=said.append))
        await await_until(waiting, what="the migration waits for its second lock")
        await caller.execute("select from mainspring.tenants")
        await await_until(lambda: said)
        assert f"held by pid {caller.info.backend_pid}" in said[0]
        await caller.rollback()
        await upgrade
        assert await (await other.execute(DEADLOCKS)).fetchall() == [(0,)]

    assert has_column(database_url)


async def test_changed_functions_are_installed_while_a_report_reads_views(
    database_url, monkeypatch
):
    added = "create or replace function mainspring.added() returns int language sql as 'select 1';"
    become(monkeypatch, functions=[*FUNCTIONS, added], version=VERSION + 1)
    with psycopg.connect(database_url) as report:
        report.execute("select count(*) from mainspring.job_status, mainspring.schedule_status")
        report.execute(ENQUEUE)

        assert await migrate.upgrade(database_url, tries=1)


async def test_an_installation_that_stops_at_a_view_is_finished_by_the_next(
    database_url, monkeypatch
):
    view = "create or replace view mainspring.audit_status as"
    added = "create or replace function mainspring.added() returns int language sql as 'select 1';"
    changed = [text.replace(view, f"{view} -- changed\n") for text in FUNCTIONS]
    become(monkeypatch, functions=[*changed, added], version=VERSION + 1)
    with psycopg.connect(database_url) as report:
        report.execute("select count(*) from mainspring.audit_status")
        with pytest.raises(SchemaLocked, match="the change of view mainspring"):
            await migrate.upgrade(database_url, tries=1)
        assert report.execute("select mainspring.added()").fetchone() == (1,)

    with pytest.raises(FunctionsOutdated, match="not those of this program"):
        await check(database_url)
    with monkeypatch.context() as older:
        become(older)
        assert not await migrate.upgrade(database_url)
        await check(database_url)

    assert await migrate.upgrade(database_url)
    await check(database_url)


async def check(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await migrate.check(connection)


async def test_an_upgrade_beside_another_says_who_runs_that(database_url, monkeypatch):
    become(monkeypatch, migration=ADDS_A_COLUMN)
    with psycopg.connect(database_url, application_name="mainspring migrate") as other:
        other.execute("select pg_advisory_lock(hashtext('mainspring.migrate'))")

        with pytest.raises(
            SchemaLocked, match=f"another one is running.* pid {other.info.backend_pid} "
        ):
            await migrate.upgrade(database_url, tries=1)


def test_the_command_says_in_one_line_who_is_in_the_way(database_url):
    with psycopg.connect(database_url, application_name="nightly report") as blocker:
        blocker.execute("update mainspring.installed_functions set version = 0")
        blocker.commit()
        blocker.execute("lock table mainspring.installed_functions in share mode")

        done = mainspring("migrate", "--tries", "2", MAINSPRING_DATABASE_URL=database_url)

    assert done.returncode == 2
    waited, gave_up = done.stderr.strip().splitlines()
    assert "is waiting for a lock held by pid" in waited
    assert "could not acquire its locks in 2 tries" in gave_up
    assert "'nightly report'" in gave_up
