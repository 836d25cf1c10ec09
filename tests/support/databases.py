"""Databases and transactions for tests that undo what they did or need an empty start."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from mainspring.db.template_databases import database_named


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
