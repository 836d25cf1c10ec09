"""What the database has: its migrations, and its functions, views and triggers.

Functions are replaced without a lock that anybody would notice. A view or a trigger is locked to be
replaced, and whoever reads the view or writes the table waits. So those are left alone where the
statement that made them has not changed, and most upgrades of functions take no such lock at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from mainspring.db import scripts
from mainspring.domain.database_errors import SchemaUnreleased

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
_LOCKED_OBJECTS = """
select 'view mainspring.' || relname from pg_class
 where relnamespace = 'mainspring'::regnamespace and relkind = 'v'
union all
select format('trigger %s on mainspring.%s', tgname, relname)
  from pg_trigger join pg_class on pg_class.oid = tgrelid
 where relnamespace = 'mainspring'::regnamespace and not tgisinternal
"""


@dataclass(frozen=True)
class Functions:
    """The functions, views and triggers of this program; the version rises with every change."""

    version: int
    scripts: Sequence[str] = field(repr=False)

    @cached_property
    def digest(self) -> str:
        return scripts.digest("\n".join(self.scripts))


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


async def install(
    connection: AsyncConnection[Any], functions: Functions, *, unchanged: dict[str, str]
) -> None:
    """Install all but the views and triggers that `unchanged` has with the same digest."""
    rows = await (await connection.execute(_LOCKED_OBJECTS)).fetchall()
    present = {name for (name,) in rows}
    await keep_grants(connection)
    objects: dict[str, str] = {}
    for statement in (each for text in functions.scripts for each in scripts.statements(text)):
        if (name := scripts.locked_object(statement)) is not None:
            objects[name] = scripts.digest(statement)
            if name in present and unchanged.get(name) == objects[name]:
                continue
        await connection.execute(statement.encode())
    await connection.execute(script("restore_grants"))
    values = (functions.version, functions.digest, Jsonb(objects))
    await connection.execute(_RECORD_FUNCTIONS, values)


def script(name: str) -> bytes:
    """A script of the upgrade itself."""
    return (resources.files("mainspring") / "sql" / "upgrade" / f"{name}.sql").read_bytes()


async def _ensure_adoptable(connection: AsyncConnection[Any]) -> None:
    rows = await (await connection.execute(_UNRELEASED)).fetchall()
    known = "\n".join(f"{number} {name} {checksum}" for number, name, checksum in rows)
    if rows and scripts.digest(known) != _ADOPTABLE:
        raise SchemaUnreleased(rows[-1][0])


async def _row(connection: AsyncConnection[Any], query: str) -> tuple[Any, ...]:
    row = await (await connection.execute(query.encode())).fetchone()
    return () if row is None else tuple(row)
