"""A real PostgreSQL for every test: one embedded server, a database cloned for each test."""

import asyncio
import hashlib
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from mainspring.db import embedded, migrate
from mainspring.db.pool import connect


def database_named(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _schema_hash() -> str:
    text = "".join([m.sql for m in migrate.migrations()] + migrate.functions())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    given = os.environ.get("MAINSPRING_TEST_DATABASE_URL")
    if given:
        yield given
        return
    folder = Path(tempfile.gettempdir()) / f"mainspring-tests-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    with embedded.running(folder) as server:
        yield server.url


@pytest.fixture(scope="session")
def template(server_url: str) -> str:
    """The name of a migrated database to clone; made once per schema."""
    name = f"mainspring_template_{_schema_hash()}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(hashtext('mainspring.tests'))")
        known = connection.execute("select from pg_database where datname = %s", (name,))
        if known.fetchone() is None:
            _make_template(connection, server_url, name)
    return name


def _make_template(connection: psycopg.Connection, server_url: str, name: str) -> None:
    stale = connection.execute(
        "select datname from pg_database where datname like 'mainspring\\_t%'"
    ).fetchall()
    for (old,) in stale:
        connection.execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(old))
        )
    unready = f"{name}_unready"
    connection.execute(sql.SQL("create database {}").format(sql.Identifier(unready)))
    asyncio.run(migrate.migrate(database_named(server_url, unready)))
    connection.execute(
        sql.SQL("alter database {} rename to {}").format(
            sql.Identifier(unready), sql.Identifier(name)
        )
    )


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    name = f"mainspring_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield database_named(server_url, name)
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def aconnection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    connection = await connect(database_url, name="test")
    async with connection:
        yield connection
