"""Databases and transactions for tests that undo what they did or need an empty start."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from mainspring.db import migrate
from mainspring.db.template_databases import database_named

# Mainspring's own login in tests of attacks: a superuser as elsewhere, and what is shipped.
EITHER_LOGIN = pytest.mark.parametrize(
    "database_url", ["superuser", "ordinary owner"], indirect=True
)


@contextmanager
def empty_database(server_url: str) -> Iterator[str]:
    """The URL of a new database without a schema of ours; it is dropped in the end."""
    name = f"mainspring_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield database_named(server_url, name)
        finally:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )


@contextmanager
def owned_database(server_url: str) -> Iterator[str]:
    """The URL of a migrated database for its owner, who has no other right: the shipped case."""
    with role(server_url) as owner, empty_database(server_url) as url:
        change = sql.SQL("alter database {} owner to {}").format(
            sql.Identifier(database_of(url)), sql.Identifier(owner)
        )
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(change)
        at = urlsplit(url)
        login = f"{owner}:{owner}@{at.netloc.rpartition('@')[2]}"
        owned = urlunsplit(at._replace(netloc=login))
        migrate.migrate_apart(owned)
        yield owned


def database_of(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])


def same_database(server_url: str, url: str) -> str:
    """The database of the second URL, for the login of the first."""
    return database_named(server_url, database_of(url))


def owner_of(connection: psycopg.Connection) -> str:
    """Whom Mainspring belongs to."""
    ((owner,),) = connection.execute("select mainspring.owner_name()").fetchall()
    return str(owner)


def create_as_owner(connection: psycopg.Connection, statements: str) -> None:
    """What they create belongs to whom Mainspring belongs to."""
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(owner_of(connection))))
    connection.execute(statements.encode())
    connection.execute("reset role")


@contextmanager
def undone(url: str) -> Iterator[psycopg.Connection]:
    """A connection inside a transaction that is rolled back in the end."""
    with (
        psycopg.connect(url, autocommit=True) as connection,
        connection.transaction(force_rollback=True),
    ):
        yield connection


@contextmanager
def role(url: str) -> Iterator[str]:
    """A new role that may log in, with its name for a password, and do nothing else."""
    name = f"mainspring_test_{uuid.uuid4().hex[:12]}"
    creation = sql.SQL("create role {} login password {}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(creation.format(sql.Identifier(name), sql.Literal(name)))
        try:
            yield name
        finally:
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


async def change_schema(connection: psycopg.Connection[Any], statement: str) -> None:
    """In a thread: it waits for transactions of workers and schedulers in this event loop, which
    have to go on meanwhile."""
    await asyncio.to_thread(connection.execute, statement.encode())
