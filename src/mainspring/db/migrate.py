"""Numbered forward-only migrations under an advisory lock, then the functions and views."""

import asyncio
import hashlib
import threading
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.db import connect
from mainspring.domain.errors.database import (
    DatabaseError,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)

_LOCK = "select pg_advisory_lock(hashtext('mainspring.migrate'))"
_UNLOCK = "select pg_advisory_unlock(hashtext('mainspring.migrate'))"
_PREPARE = """
create schema if not exists mainspring;
create table if not exists mainspring.migrations (
    number integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
);
"""
_EXISTS = "select to_regclass('mainspring.migrations') is not null"
_NEWEST = "select coalesce(max(number), 0) from mainspring.migrations"
_RECORD = "insert into mainspring.migrations (number, name, checksum) values (%s, %s, %s)"
# PostgreSQL resolves the names in views, trigger definitions and SQL-language functions when it
# creates them, so a folder may use only those before it. PL/pgSQL bodies may use any.
_FOLDERS = ("internal", "views", "triggers", "public", "final")
_PARTITIONS = "select mainspring.ensure_partitions(7)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str = field(repr=False)

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """All migrations this program knows, in order."""
    folder = _sql_folder() / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name
    )
    return [Migration(int(f.name[:4]), f.name[5:-4], f.read_text("utf-8")) for f in files]


def functions() -> list[str]:
    """The functions, views and triggers, which are created anew after every migration."""
    files = (file for name in _FOLDERS for file in _in_load_order(_sql_folder() / name))
    return [file.read_text("utf-8") for file in files]


def newest() -> int:
    return migrations()[-1].number


async def migrate(url: str) -> list[Migration]:
    """Bring the database up to this program; returns what was applied."""
    connection = await connect.connect(url, name="mainspring migrate")
    async with connection:
        await connection.execute(_LOCK)
        try:
            await connection.execute(_PREPARE)
            return await _apply_pending(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseError(
                f"the database user may not create the schema: {error.diag.message_primary}; "
                "run `mainspring migrate` as the database's owner"
            ) from error
        finally:
            if not connection.closed:
                await connection.execute(_UNLOCK)


def migrate_apart(url: str) -> None:
    """Migrate in a thread of its own, since the caller's may already run an event loop."""
    problems: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(migrate(url))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            problems.append(error)

    thread = threading.Thread(target=work, name="mainspring-migrate")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


async def check(connection: AsyncConnection[Any]) -> None:
    """Raise unless the database is exactly at this program's migration."""
    found = await current(connection)
    if found is None:
        raise SchemaMissing
    if found < newest():
        raise SchemaOutdated(found, newest())
    if found > newest():
        raise SchemaTooNew(found, newest())


async def current(connection: AsyncConnection[Any]) -> int | None:
    """The newest migration in the database; None without a schema."""
    row = await (await connection.execute(_EXISTS)).fetchone()
    if row is None or not row[0]:
        return None
    row = await (await connection.execute(_NEWEST)).fetchone()
    return int(row[0]) if row else None


async def _apply_pending(connection: AsyncConnection[Any]) -> list[Migration]:
    found = await current(connection) or 0
    if found > newest():
        raise SchemaTooNew(found, newest())
    pending = [migration for migration in migrations() if migration.number > found]
    if not pending:
        return []
    # Each in a transaction of its own: a value that one adds to a type, the next can use.
    for migration in pending:
        async with connection.transaction():
            await connection.execute(migration.sql)
            await connection.execute(
                _RECORD, (migration.number, migration.name, migration.checksum)
            )
            if migration is pending[-1]:
                for script in functions():
                    await connection.execute(script)
                await connection.execute(_PARTITIONS)
    return pending


def _in_load_order(folder: Traversable) -> list[Traversable]:
    """Jobs first, since the views of other nouns read theirs; the rest by name."""
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(files, key=lambda file: (file.name != "jobs.sql", file.name))


def _sql_folder() -> Traversable:
    return resources.files("mainspring") / "sql"
