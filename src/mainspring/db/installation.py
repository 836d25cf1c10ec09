"""What the database has: its migrations, and its functions, views and triggers.

Functions are replaced without a lock that anybody would notice, all in one transaction. To replace
a view or a trigger is to lock it, so that whoever reads the view or writes the table waits; and who
waits for one such lock while it holds another can be in a deadlock with a program, which may be the
one that is told to give up. Therefore each of these has a transaction of its own, after the
functions, and is left alone where the statement that made it has not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from mainspring.db import scripts
from mainspring.domain.errors.database import SchemaUnreleased

_HAS_SCHEMA = "select to_regnamespace('mainspring') is not null"
_CREATE_SCHEMA = "create schema mainspring"
_HAS_TABLES = """
select to_regclass('mainspring.migrations') is not null,
       to_regclass('mainspring.installed_functions') is not null
"""
_UNRELEASED = "select number, name, checksum from mainspring.migrations order by number"
# Of the last 17 migrations before the baseline: what they made is what the baseline makes.
_ADOPTABLE = "13edd4e919d5d67706898baa28bbb286a4dbc87493424106ee937ce81513a8a7"
_INSTALLED = """
select (select jsonb_object_agg(number, checksum) from mainspring.migrations),
       (select coalesce(max(works_with), 0) from mainspring.migrations),
       coalesce(functions.version, 0), coalesce(functions.digest, ''),
       coalesce(functions.objects, '{}')
  from (select) as one
  left join mainspring.installed_functions as functions on true
"""
_RECORD_FUNCTIONS = """
insert into mainspring.installed_functions (version, digest, objects) values (%s, %s, %s)
    on conflict (is_only_row) do update
   set version = excluded.version, digest = excluded.digest, objects = excluded.objects,
       installed_at = now()
"""
_FORGET_GRANTS = "delete from mainspring.grants_to_restore"
# A function may read what a view is about to have; it is not called before.
_UNCHECKED_BODIES = "set local check_function_bodies = off"
_LOCKED_OBJECTS = """
select 'view mainspring.' || relname from pg_class
 where relnamespace = 'mainspring'::regnamespace and relkind = 'v'
union all
select format('trigger %s on mainspring.%s', tgname, relname)
  from pg_trigger join pg_class on pg_class.oid = tgrelid
 where relnamespace = 'mainspring'::regnamespace and not tgisinternal
"""


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions, views and triggers of this program; the version rises with every change."""

    version: int
    scripts: Sequence[str] = field(repr=False)

    @property
    def digest(self) -> str:
        return _digest(tuple(self.scripts))


@dataclass(frozen=True, slots=True)
class Plan:
    """The statements of an installation: all in one transaction, or by name in one each. `objects`
    has the digests of all that make views and triggers."""

    functions: Functions
    together: list[str] = field(default_factory=list)
    apart: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Installed:
    """What the database has; `checksums` by the number of the migration, `objects` the digests of
    the statements that made views and triggers."""

    checksums: dict[int, str] = field(default_factory=dict)
    works_with: int = 0
    version: int = 0
    digest: str = ""
    objects: dict[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The newest migration; 0 before the first."""
        return max(self.checksums, default=0)

    def is_behind(self, functions: Functions) -> bool:
        """Whether what it has is older, or something else under the same version."""
        return self.version < functions.version or (
            self.version == functions.version and self.digest != functions.digest
        )


async def read(connection: AsyncConnection[Any]) -> Installed | None:
    """None without a schema; raises SchemaUnreleased for one that no upgrade leads from."""
    has_migrations, has_functions = await _row(connection, _HAS_TABLES)
    if not has_migrations:
        return None
    if not has_functions:
        # Before the baseline nobody recorded them.
        await _ensure_adoptable(connection)
        return Installed()
    checksums, *others = await _row(connection, _INSTALLED)
    return Installed({int(number): each for number, each in (checksums or {}).items()}, *others)


async def prepare(connection: AsyncConnection[Any]) -> bool:
    """Make sure of the schema and the tables that upgrades keep. True if the schema was an
    unreleased one, whose tables are those of the baseline."""
    # Asked first: `if not exists` needs the right to create one even where there is one.
    if not (await _row(connection, _HAS_SCHEMA))[0]:
        await connection.execute(_CREATE_SCHEMA)
    has_migrations, has_functions = await _row(connection, _HAS_TABLES)
    await connection.execute(script("prepare"))
    if not has_migrations or has_functions:
        return False
    await _ensure_adoptable(connection)
    await keep_grants(connection)
    await connection.execute(script("adopt"))
    return True


async def keep_grants(connection: AsyncConnection[Any]) -> None:
    """Write down the grants on functions and views before something drops these."""
    await connection.execute(script("keep_grants"))


async def plan(
    connection: AsyncConnection[Any], functions: Functions, *, unchanged: dict[str, str]
) -> Plan:
    """What to install; `unchanged` are the digests of statements that need not run again."""
    rows = await (await connection.execute(_LOCKED_OBJECTS)).fetchall()
    present = {name for (name,) in rows}
    made = Plan(functions)
    for statement in (each for text in functions.scripts for each in scripts.statements(text)):
        if (name := scripts.locked_object(statement)) is None:
            made.together.append(statement)
            continue
        made.objects[name] = scripts.digest(statement)
        if name in present and unchanged.get(name) == made.objects[name]:
            continue
        # In an empty schema nobody is in the way. Nor is anybody of a view that is new, but it may
        # need one that is replaced before it.
        if not present or (name not in present and name.startswith("view") and not made.apart):
            made.together.append(statement)
        else:
            made.apart[name] = statement
    return made


async def install_functions(connection: AsyncConnection[Any], planned: Plan) -> None:
    """Everything but what is replaced apart; from here on no older program installs its own."""
    await keep_grants(connection)
    await connection.execute(_UNCHECKED_BODIES)
    for statement in planned.together:
        await connection.execute(statement.encode())
    await connection.execute(script("restore_grants"))
    await connection.execute(_RECORD_FUNCTIONS, (planned.functions.version, "", Jsonb({})))


async def finish(connection: AsyncConnection[Any], planned: Plan) -> None:
    """Record that all of it is installed."""
    await connection.execute(script("restore_grants"))
    await connection.execute(_FORGET_GRANTS)
    values = (planned.functions.version, planned.functions.digest, Jsonb(planned.objects))
    await connection.execute(_RECORD_FUNCTIONS, values)


def script(name: str) -> bytes:
    """A script of the upgrade itself."""
    return (resources.files("mainspring") / "sql" / "upgrade" / f"{name}.sql").read_bytes()


@lru_cache(maxsize=4)
def _digest(texts: tuple[str, ...]) -> str:
    return scripts.digest("\n".join(texts))


async def _ensure_adoptable(connection: AsyncConnection[Any]) -> None:
    rows = await (await connection.execute(_UNRELEASED)).fetchall()
    known = "\n".join(f"{number} {name} {checksum}" for number, name, checksum in rows)
    if rows and scripts.digest(known) != _ADOPTABLE:
        raise SchemaUnreleased(rows[-1][0])


async def _row(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(query.encode())).fetchone()
    return () if row is None else tuple(row)
