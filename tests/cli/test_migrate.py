"""`mainspring migrate`."""

import json
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from mainspring.db import migrate
from tests.cli.conftest import Command
from tests.support.commands import mainspring, sentence
from tests.support.databases import empty_database

NEWEST = migrate.newest()


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


@pytest.fixture
def command(empty_url: str) -> Command:
    return partial(mainspring, "migrate", MAINSPRING_DATABASE_URL=empty_url)


def test_migrate_builds_the_schema_once_and_check_tells_whether_it_must(command):
    missing = command("--check")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "has no Mainspring schema" in missing.stderr

    applied = command("--json")
    assert json.loads(applied.stdout)["at"] == NEWEST
    assert json.loads(applied.stdout)["applied"][0].startswith("0001 ")
    assert command().stdout == f"nothing to do; at migration {NEWEST}\n"
    checked = command("--check")
    assert (checked.returncode, checked.stdout) == (0, f"up to date, at migration {NEWEST}\n")


def test_a_schema_newer_than_the_program_is_refused_by_everyone(command, empty_url):
    command()
    with psycopg.connect(empty_url) as connection:
        connection.execute("insert into mainspring.migrations values (9999, 'later', '')")

    for arguments in ([], ["--check"]):
        done = command(*arguments)
        assert done.returncode == 2
        assert sentence(done).endswith(f"knows only up to {NEWEST}; upgrade Mainspring")
    worker = mainspring("worker", "--app", "examples.hello:app", MAINSPRING_DATABASE_URL=empty_url)
    assert worker.returncode == 2
    assert "upgrade Mainspring" in sentence(worker)


def test_who_may_not_create_the_schema_is_told_who_may(server_url, empty_url):
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("drop role if exists mainspring_test_guest")
        connection.execute("create role mainspring_test_guest login")
    guest = f"{empty_url}&user=mainspring_test_guest"

    done = mainspring("migrate", MAINSPRING_DATABASE_URL=guest)

    assert done.returncode == 2
    assert "run `mainspring migrate` as the database's owner" in sentence(done)
