"""Upgrades: numbered forward-only migrations under an advisory lock, then functions and views.

A migration changes tables once. Functions, views and triggers are installed as a whole whenever
they differ from what the database has, with or without a migration. Their version is a number that
rises with every change, so that of two programs only the newer one installs its own.

Programs of two releases run beside each other while an upgrade is rolled out. Each migration says
which program is the oldest that may (`-- works with: 0001`), by the number of the newest migration
that program knows. A program starts unless the schema is older than it needs, or says that the
program is too old.
"""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from psycopg import AsyncConnection, errors

from mainspring.db import connect, installation, rights, scripts
from mainspring.db.installation import Functions, Installed, Plan
from mainspring.db.schema_locks import NAME, TRIES, Report, ShortLocks, wait_less
from mainspring.domain.errors.database import (
    DatabaseError,
    FunctionsOutdated,
    RightsMissing,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    SchemaUnreleased,
)

_LOCK = "select pg_advisory_lock(hashtext('mainspring.migrate'))"
_RECORD = """
insert into mainspring.migrations (number, name, checksum, works_with) values (%s, %s, %s, %s)
"""
_MAY_NOT_READ = "read Mainspring's schema: {}; connect as its owner"
_MAY_NOT_CHANGE = "change the schema: {}; run `mainspring migrate` as the database's owner"
# PostgreSQL resolves the names in views, trigger definitions and SQL-language functions when it
# creates them, so a folder may use only those before it. PL/pgSQL bodies may use any.
_FOLDERS = ("internal", "views", "triggers", "public", "final")
_PARTITIONS = "select mainspring.ensure_partitions(7)"

_WORKS_WITH = re.compile(r"^-- works with: (\d{4})$", re.MULTILINE)
_VERSION_LINE = re.compile(r"^(\d+) ([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str = field(repr=False)

    @cached_property
    def checksum(self) -> str:
        """Of the statements alone, so that a comment can be improved later."""
        return scripts.digest(scripts.without_comments(self.sql))

    @cached_property
    def works_with(self) -> int:
        """The oldest program that may run beside it, by that program's newest migration."""
        line = _WORKS_WITH.search(self.sql)
        if line is None:
            raise ValueError(f"migration {self} has no line `-- works with: NNNN`")
        return int(line[1])

    def __str__(self) -> str:
        return f"{self.number:04} {self.name}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What an upgrade has to do, or has done."""

    migrations: list[Migration]
    has_functions: bool

    def __bool__(self) -> bool:
        return bool(self.migrations) or self.has_functions


def migrations() -> list[Migration]:
    """All migrations this program knows, in order."""
    files = _scripts("migrations")
    return [Migration(int(name[:4]), name[5:-4], text) for name, text in files]


def functions() -> list[str]:
    """The scripts of functions, views and triggers, in the order they are installed."""
    scripts_of = (_scripts(folder) for folder in _FOLDERS)
    return [text for named in scripts_of for _, text in sorted(named, key=_load_order)]


def recorded_functions() -> tuple[int, str]:
    """The version and digest that functions.version says; of several lines, the highest."""
    lines = _VERSION_LINE.findall((_sql_folder() / "functions.version").read_text("utf-8"))
    return max((int(version), digest) for version, digest in lines)


def own_functions() -> Functions:
    return Functions(recorded_functions()[0], functions())


def schema_digest() -> str:
    """Of all that decides what an upgraded database looks like, and what it records of itself."""
    texts = [migration.sql for migration in migrations()]
    made = [installation.script("prepare").decode(), *texts, *functions()]
    return scripts.digest("\n".join([*made, str(recorded_functions())]))


def newest() -> int:
    return migrations()[-1].number


async def migrate(url: str) -> list[Migration]:
    """Bring the database up to this program; returns the migrations that were applied."""
    return (await upgrade(url)).migrations


async def upgrade(url: str, *, tries: int = TRIES, report: Report = lambda _: None) -> Changes:
    """Bring the database up to this program, and return what changed. `report` is given a sentence
    each time it has to wait for a lock."""
    async with await connect.connect(connect.for_own_statements(url), name=NAME) as connection:
        await _ensure_rights(connection, report)
        if not await pending(connection):
            return Changes([], has_functions=False)
        with _explained(_MAY_NOT_CHANGE):
            locks = ShortLocks(url, connection, tries=tries, report=report)
            # Given back when the connection is closed, or this process is killed.
            await locks.run(
                partial(connection.execute, _LOCK), what="the upgrade (another one is running)"
            )
            return await _apply(connection, locks)


async def check_rights(connection: AsyncConnection[Any]) -> None:
    """Raise RightsMissing if an administrator has to do something first."""
    (await rights.read(connection)).ensure()


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
    """Raise unless this program can work with the schema and the functions it finds."""
    found = await _read(connection)
    if found is None:
        raise SchemaMissing
    if found.number < newest():
        raise SchemaOutdated(found.number, newest())
    if found.works_with > newest():
        raise SchemaTooNew(found.number, newest())
    if found.is_behind(own := own_functions()):
        raise FunctionsOutdated(found.version, own.version)


async def is_ahead(connection: AsyncConnection[Any]) -> bool:
    """Whether the database has what a newer program has installed."""
    found = await _read(connection) or Installed()
    return found.number > newest() or found.version > own_functions().version


async def pending(connection: AsyncConnection[Any]) -> Changes:
    """What an upgrade would do; raises if there is no way to this program's schema."""
    return _missing(await _read(connection) or Installed())


async def current(connection: AsyncConnection[Any]) -> int | None:
    """The newest migration in the database; None without a schema."""
    found = await _read(connection)
    return None if found is None else found.number


async def _ensure_rights(connection: AsyncConnection[Any], report: Report) -> None:
    """Before anything is done. Workers and SQL callers do without the right to serve requests."""
    lacking = await rights.read(connection)
    if lacking.schemas:
        lacking.ensure()
    elif lacking.requests:
        report(f"warning: {RightsMissing(lacking.login, lacking.requests)}")


async def _read(connection: AsyncConnection[Any]) -> Installed | None:
    with _explained(_MAY_NOT_READ):
        return await installation.read(connection)


def _missing(found: Installed) -> Changes:
    if found.works_with > newest():
        raise SchemaTooNew(found.number, newest())
    for known in migrations():
        if found.checksums.get(known.number, known.checksum) != known.checksum:
            raise SchemaUnreleased(found.number)
    todo = [migration for migration in migrations() if migration.number > found.number]
    return Changes(todo, has_functions=bool(todo) or found.is_behind(own_functions()))


async def _apply(connection: AsyncConnection[Any], locks: ShortLocks) -> Changes:
    await locks.run(partial(_prepare, connection), what="the upgrade")
    found = await installation.read(connection) or Installed()
    changes = _missing(found)
    # Each in a transaction of its own: a value that one adds to a type, the next can use.
    for migration in changes.migrations[:-1]:
        await locks.run(partial(apply_alone, connection, migration), what=f"migration {migration}")
    if changes.has_functions:
        await _install(connection, locks, found=found, last=changes.migrations[-1:])
    return changes


async def _prepare(connection: AsyncConnection[Any]) -> None:
    async with connection.transaction():
        if await installation.prepare(connection):
            await _record(connection, migrations()[0])


async def apply_alone(connection: AsyncConnection[Any], migration: Migration) -> None:
    """Without the functions that come with it."""
    async with connection.transaction():
        await installation.keep_grants(connection)
        first, *others = scripts.statements(migration.sql)
        await connection.execute(first.encode())
        await wait_less(connection, statements=len(others))
        for statement in others:
            await connection.execute(statement.encode())
        await _record(connection, migration)


async def _install(
    connection: AsyncConnection[Any],
    locks: ShortLocks,
    *,
    found: Installed,
    last: list[Migration],
) -> None:
    """The last migration and the functions together: what it drops is there again at once."""
    # After a migration a view may mean something else though its text is the same.
    unchanged = {} if last else found.objects

    async def change() -> Plan:
        async with connection.transaction():
            for migration in last:
                await apply_alone(connection, migration)
            planned = await installation.plan(connection, own_functions(), unchanged=unchanged)
            await installation.install_functions(connection, planned)
            return planned

    first = f"migration {last[0]}" if last else "the installation of functions"
    planned = await locks.run(change, what=first)
    for name, statement in planned.apart.items():
        step = partial(connection.execute, statement.encode())
        await locks.run(step, what=f"the change of {name}")
    if last:
        await locks.run(partial(connection.execute, _PARTITIONS), what="the creation of partitions")
    async with connection.transaction():
        await installation.finish(connection, planned)


async def _record(connection: AsyncConnection[Any], migration: Migration) -> None:
    values = (migration.number, migration.name, migration.checksum, migration.works_with)
    await connection.execute(_RECORD, values)


@contextmanager
def _explained(problem: str) -> Iterator[None]:
    """Say what to do about a role that lacks rights, a standby, and what others built on ours."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise DatabaseError(
            f"the database user may not {problem.format(error.diag.message_primary)}"
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise DatabaseError(
            "the database is read-only; run `mainspring migrate` on the primary server"
        ) from error
    except errors.DependentObjectsStillExist as error:
        raise DatabaseError(
            f"the upgrade replaces objects that yours depend on ({error.diag.message_detail}); "
            "drop yours, run `mainspring migrate` and create them again"
        ) from error


@cache
def _scripts(folder: str) -> tuple[tuple[str, str], ...]:
    """The names and texts of the scripts in a folder; read once, since every health check asks."""
    files = (file for file in (_sql_folder() / folder).iterdir() if file.name.endswith(".sql"))
    return tuple(sorted((file.name, file.read_text("utf-8")) for file in files))


def _in_load_order(folder: Traversable) -> list[Traversable]:
    """Jobs first, since the views of other nouns read theirs; the rest by name."""
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(files, key=lambda file: (file.name != "jobs.sql", file.name))


def _load_order(script: tuple[str, str]) -> tuple[bool, str]:
    """Jobs first, since the views of other nouns read theirs; the rest by name."""
    name, _ = script
    return name != "jobs.sql", name


def _sql_folder() -> Traversable:
    return resources.files("mainspring") / "sql"
