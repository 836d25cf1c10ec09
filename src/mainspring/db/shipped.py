"""What Mainspring ships: its tables with their storage parameters, indexes and triggers, as the
dump of the migrations has them, and the texts of its functions. None of it is listed again."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from mainspring.db import migrate, scripts

_TABLE = re.compile(
    r"^CREATE (?:UNLOGGED )?TABLE mainspring\.(\w+) \(\n.*?^\)"
    r"(?:\nPARTITION BY [^;\n]*)?(?:\nWITH \(([^)]*)\))?;",
    re.MULTILINE | re.DOTALL,
)
_OPTION = re.compile(r"(\w+)='([^']*)'")
_INDEX = re.compile(
    r"^CREATE (?:UNIQUE )?INDEX (\w+) ON |^    ADD CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE) ",
    re.MULTILINE,
)
_TRIGGER = re.compile(
    r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+) .*? ON mainspring\.(\w+) ", re.MULTILINE
)
_PROTECTED = re.compile(r"^ALTER TABLE mainspring\.(\w+) ENABLE ROW LEVEL SECURITY;", re.MULTILINE)
_FUNCTION = re.compile(
    r"^create or replace function mainspring\.(\w+)\(.*?\bas \$(\w*)\$(.*)\$\2\$",
    re.MULTILINE | re.DOTALL,
)
_DAY = re.compile(r"_\d{8}$")
_REBUILT = re.compile(r"_cc(?:new|old)\d*$")


@dataclass(frozen=True, slots=True)
class Shipped:
    """`tables` has the storage parameters by table, `triggers` are such as `audit on limits`."""

    tables: Mapping[str, Mapping[str, str]]
    indexes: frozenset[str]
    triggers: frozenset[str]
    protected: frozenset[str]

    def options_of(self, table: str) -> Mapping[str, str] | None:
        """Of a day partition those of a new one; None for a table that is not ours."""
        if table in self.tables:
            return self.tables[table]
        return {} if _DAY.sub("", table) in self.tables and _DAY.search(table) else None

    def is_rebuild(self, index: str) -> bool:
        """Whether a rebuild of one of our indexes makes or leaves one of this name."""
        return _REBUILT.search(index) is not None and _REBUILT.sub("", index) in self.indexes


@cache
def schema() -> Shipped:
    path = resources.files("mainspring") / "sql" / "schema.sql"
    text = path.read_text(encoding="utf-8")
    triggers = (f"{name} on {table}" for name, table in _TRIGGER.findall(text))
    return Shipped(
        {name: dict(_OPTION.findall(options)) for name, options in _TABLE.findall(text)},
        frozenset(name or constraint for name, constraint in _INDEX.findall(text)),
        frozenset(triggers),
        frozenset(_PROTECTED.findall(text)),
    )


@cache
def function_texts() -> Mapping[str, Sequence[str]]:
    """The digests of the bodies of our functions by name, as PostgreSQL's md5 makes them of what it
    stores; functions in standard SQL are stored as something else, and left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for statement in (each for text in migrate.functions() for each in scripts.statements(text)):
        if (match := _FUNCTION.search(statement)) is not None:
            name, _, body = match.groups()
            digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
            found[name].append(digest)
    return found
