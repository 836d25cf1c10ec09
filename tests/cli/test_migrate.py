"""`mainspring migrate`."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring.db import migrate
from tests.db.embedded.folders import open_folder
from tests.support.commands import clean_environment, facts, mainspring, mainspring_each, sentence
from tests.support.databases import empty_database
from tests.support.processes import WorkerProcess
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

NEWEST = migrate.newest()
MIGRATING = """
select pid from pg_stat_activity
 where application_name = 'mainspring migrate' and datname = current_database()
"""
BLOCKED = """
select pid from pg_stat_activity
 where application_name = 'mainspring migrate' and datname = current_database()
   and wait_event_type = 'Lock'
"""


@pytest.fixture
def open_data_dir() -> Iterator[Path]:
    """A folder that the account of an embedded server can enter, unlike tmp_path."""
    for folder in open_folder():
        yield folder / "data"


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


def test_migrate_builds_the_schema_once_and_check_tells_whether_it_must(empty_url):
    missing, applied, again, checked = mainspring_each(
        [["migrate", "--check"], ["migrate", "--json"], ["migrate"], ["migrate", "--check"]],
        MAINSPRING_DATABASE_URL=empty_url,
    )

    assert (missing.returncode, missing.stdout) == (1, "")
    assert "has no Mainspring schema" in missing.stderr
    assert json.loads(applied.stdout)["at"] == NEWEST
    assert json.loads(applied.stdout)["applied"][0].startswith("0001 ")
    assert again.stdout == f"nothing to do; at migration {NEWEST}\n"
    assert (checked.returncode, checked.stdout) == (0, f"up to date, at migration {NEWEST}\n")


def test_migrate_says_what_it_has_created_in_an_empty_data_directory(open_data_dir):
    missing, applied, again = mainspring_each(
        [["migrate", "--check"], ["migrate"], ["migrate"]], MAINSPRING_DATA_DIR=str(open_data_dir)
    )

    note = f"note: this is the embedded database in {open_data_dir}\n"
    assert missing.returncode == 1
    assert missing.stderr.startswith(f"{note}this database has no Mainspring schema")
    assert (applied.stderr, again.stderr) == (note, note)
    assert applied.stdout.startswith("applied migration 0001 baseline")
    assert again.stdout == f"nothing to do; at migration {NEWEST}\n"


def test_check_says_what_is_pending(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update mainspring.installed_functions set version = 0")
        functions, as_json = mainspring_each(
            [["migrate", "--check"], ["migrate", "--check", "--json"]],
            MAINSPRING_DATABASE_URL=database_url,
        )
        connection.execute("delete from mainspring.migrations where number = %s", (NEWEST,))
        both = mainspring("migrate", "--check", MAINSPRING_DATABASE_URL=database_url)

    assert (functions.returncode, functions.stdout) == (1, "")
    assert functions.stderr == "pending: functions and views; run `mainspring migrate`\n"
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout) == {"pending": [], "functions": True}
    assert f"pending: migration {NEWEST:04} " in both.stderr
    assert ", functions and views; run" in both.stderr


def test_changed_functions_are_refused_by_every_role_and_installed_by_migrate(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update mainspring.installed_functions set digest = 'other'")
    roles = [["worker", "--app", "examples.hello:app"], ["scheduler"], ["server", "--port", "0"]]

    for done in mainspring_each(roles, MAINSPRING_DATABASE_URL=database_url):
        assert done.returncode == 2
        assert "the functions and views in the database are not those of" in done.stderr
        assert "run `mainspring migrate`" in done.stderr

    migrated, checked = mainspring_each(
        [["migrate", "--json"], ["migrate", "--check"]], MAINSPRING_DATABASE_URL=database_url
    )
    assert facts(migrated) == {"applied": [], "functions": True, "at": NEWEST}
    assert checked.returncode == 0


def test_a_migration_that_is_killed_in_the_middle_is_done_by_the_next(empty_url, tmp_path):
    with (
        psycopg.connect(empty_url, autocommit=True) as watcher,
        psycopg.connect(empty_url) as blocker,
    ):
        watcher.execute("create schema mainspring")
        # The baseline comes to it half way, and waits for whoever makes the same name.
        blocker.execute("create type mainspring.slot_outcome as enum ()")
        environment = clean_environment(MAINSPRING_DATABASE_URL=empty_url)
        process = WorkerProcess(["migrate"], environment, tmp_path / "migrate.log", ROOT)
        try:
            wait_until(lambda: watcher.execute(BLOCKED).fetchall(), 30, "it waits")
        finally:
            process.kill()
        blocker.rollback()
        wait_until(lambda: not watcher.execute(MIGRATING).fetchall(), 30, "its session ends")

        assert watcher.execute("select to_regclass('mainspring.jobs')").fetchone() == (None,)
        again, checked = mainspring_each(
            [["migrate"], ["migrate", "--check"]], MAINSPRING_DATABASE_URL=empty_url
        )

    assert (again.returncode, checked.returncode) == (0, 0), again.stderr
    assert again.stdout.startswith("applied migration 0001 baseline")


def test_a_schema_newer_than_the_program_is_refused_by_everyone(empty_url):
    assert mainspring("migrate", MAINSPRING_DATABASE_URL=empty_url).returncode == 0
    with psycopg.connect(empty_url) as connection:
        connection.execute(
            "insert into mainspring.migrations (number, name, checksum, works_with)"
            " values (9999, 'later', '', 9999)"
        )

    commands = [["migrate"], ["migrate", "--check"], ["worker", "--app", "examples.hello:app"]]
    for done in mainspring_each(commands, MAINSPRING_DATABASE_URL=empty_url):
        assert done.returncode == 2
        assert sentence(done).endswith(f"knows only up to {NEWEST}; upgrade Mainspring")


@pytest.fixture
def guest_url(empty_url: str) -> Iterator[str]:
    """The same database for someone without rights."""
    name = f"mainspring_test_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login".encode())
        try:
            yield f"{empty_url}&user={name}"
        finally:
            connection.execute(f"drop role {name}".encode())


def test_who_may_not_create_the_schema_is_told_who_may(guest_url):
    done = mainspring("migrate", MAINSPRING_DATABASE_URL=guest_url)

    assert done.returncode == 2
    assert "is not the owner of this database and lacks rights; ask an administrator" in done.stderr
    assert "\ncreate schema mainspring authorization mainspring_test_" in done.stderr
