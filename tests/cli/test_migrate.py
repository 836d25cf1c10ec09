"""`mainspring migrate`."""

import json
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from mainspring.db import migrate
from tests.support.commands import mainspring, mainspring_each, sentence
from tests.support.databases import empty_database

NEWEST = migrate.newest()


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
    assert "run `mainspring migrate` as the database's owner" in sentence(done)
