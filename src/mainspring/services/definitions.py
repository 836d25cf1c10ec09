"""Use cases of definitions: check what was asked, say it to the store, tell what came of it."""

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mainspring.db.database import Database
from mainspring.db.plans import Plan, Statement
from mainspring.db.sessions import Session, run_call
from mainspring.domain.commands import ensure_fields_known, read_command
from mainspring.domain.definitions import (
    Definition,
    DefinitionState,
    Handler,
    ensure_own_key,
    fill_in_attempts,
)
from mainspring.domain.errors import (
    DuplicateDefinition,
    InvalidDefinition,
    InvalidOption,
    UnknownDefinition,
)
from mainspring.domain.errors.database import RoleLoginFailed
from mainspring.domain.errors.definitions import InactiveDefinition
from mainspring.domain.filters import Several, words
from mainspring.domain.schemas import Schema, ensure_affordable
from mainspring.domain.sql_functions import OR_TRUSTED
from mainspring.domain.suggestions import closest, did_you_mean
from mainspring.domain.types import Kind
from mainspring.store import definitions as store
from mainspring.store import sql_functions
from mainspring.store.rows.definitions import BACKOFF_COLUMNS

# What each kind has in its spec.
SPEC_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PYTHON: (),
    Kind.SQL: ("function", "role", "trusted"),
    Kind.COMMAND: (
        *("argv", "working_directory", "environment"),
        *("success_codes", "fail_codes"),
    ),
    Kind.REMOTE: ("revision",),
}
_NEEDED: Mapping[Kind, str] = {Kind.SQL: "function", Kind.COMMAND: "argv"}
_FIELDS = frozenset(part.name for part in fields(Definition)) - {"key", "kind", "spec"}


async def create(
    session: Session, definition: Definition, *, database: Database
) -> DefinitionState:
    """`database` is the one of the session, for a look whether its role can log in."""
    await _ensure_login(session, definition, database)
    if not await store.create(session, definition):
        raise DuplicateDefinition(definition.key)
    return await get(session, definition.key)


async def update(
    session: Session,
    key: str,
    changes: Mapping[str, Any],
    *,
    directories: Sequence[Path],
    database: Database,
) -> DefinitionState:
    """Change the given fields; jobs that are enqueued already keep what they have."""
    known = (await get(session, key)).definition
    if known.kind is Kind.PYTHON:
        raise InvalidDefinition(f"{key}: is declared in code; change it there")
    changed = changed_by(known, changes)
    if changes.keys() & set(SPEC_FIELDS[known.kind]):
        changed = pinned(changed, directories)
        await _ensure_login(session, changed, database)
    columns = {column for name in changes for column in columns_of(known.kind, name)}
    await store.update(session, key, changed, columns=columns)
    return await get(session, key)


async def set_active(session: Session, key: str, *, is_active: bool) -> DefinitionState:
    if not await store.set_active(session, key, is_active=is_active):
        raise await unknown(session, key)
    return await get(session, key)


async def get(session: Session, key: str) -> DefinitionState:
    state = await store.get(session, key)
    if state is None:
        raise await unknown(session, key)
    return state


async def list_definitions(
    session: Session,
    *,
    after: str | None = None,
    kind: Several[str] = None,
    active: bool | None = None,
    limit: int = 100,
) -> list[DefinitionState]:
    kinds = words("kind", kind, Kind)
    return await store.list_definitions(
        session, after=after, kinds=kinds, active=active, limit=limit
    )


def make(key: str, kind: str, given: Mapping[str, Any]) -> Definition:
    """A whole definition from the fields that are not None; raises what is wrong with it."""
    chosen = _kind(kind)
    ensure_own_key(key)
    if chosen is Kind.PYTHON:
        raise InvalidDefinition(
            f"{key}: a Python handler is declared in code, with @app.job", field="kind"
        )
    asked = {name: value for name, value in given.items() if value is not None}
    bare = Definition(key=key, kind=chosen)
    made = changed_by(bare, asked)
    needed = _NEEDED.get(chosen)
    if needed is not None and not made.spec.get(needed):
        raise InvalidDefinition(
            f"{key}: {needed} is missing; a {chosen} definition needs it", field=needed
        )
    return made


def pinned(definition: Definition, directories: Sequence[Path]) -> Definition:
    """The same with the program of a command found, once and for all."""
    if definition.kind is not Kind.COMMAND:
        return definition
    command = read_command(definition.key, definition.spec)
    path = find_program(definition.key, command.template.executable, directories)
    return replace(definition, spec={**definition.spec, "executable": str(path)})


def find_program(key: str, name: str, directories: Sequence[Path]) -> Path:
    """The real path of a program in one of the directories."""
    if not directories:
        raise InvalidDefinition(
            f"{key}: no programs are allowed to run; set MAINSPRING_COMMAND_DIRECTORIES to the "
            "directories of allowed programs, on the server too if there is one",
            field="argv",
        )
    allowed = [directory.resolve() for directory in directories]
    wanted = [Path(name)] if name.startswith("/") else [each / name for each in allowed]
    for candidate in (path.resolve() for path in wanted):
        is_inside = any(candidate.is_relative_to(directory) for directory in allowed)
        if is_inside and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    places = ", ".join(map(str, directories))
    here = socket.gethostname()
    raise InvalidDefinition(
        f"{key}: there is no program {name!r} in {places} on {here}", field="argv"
    )


async def _ensure_login(session: Session, definition: Definition, database: Database) -> None:
    """Refuse a role that no worker could log in as; one that is missing the database refuses."""
    spec = definition.spec
    if definition.kind is not Kind.SQL or "role" not in spec or spec.get("trusted"):
        return
    if not await sql_functions.has_role(session, spec["role"]):
        return
    try:
        async with database.role_logins().as_role(spec["role"]):
            return
    except RoleLoginFailed as error:
        raise InvalidDefinition(f"{definition.key}: {error}, {OR_TRUSTED}", field="role") from None


def changed_by(known: Definition, changes: Mapping[str, Any]) -> Definition:
    spec_fields = SPEC_FIELDS[known.kind]
    if unknown := changes.keys() - _FIELDS - set(spec_fields):
        name = min(unknown)
        hint = did_you_mean(name, [*_FIELDS, *spec_fields])
        raise InvalidOption(name, f"is not a field of a {known.kind} definition{hint}")
    spec = {**known.spec, **{name: changes[name] for name in spec_fields if name in changes}}
    own = {name: value for name, value in changes.items() if name in _FIELDS}
    if isinstance(document := own.get("arg_schema"), Mapping):
        ensure_affordable(known.key, document)
        Schema(known.key, document)
    for name in ("tags", "approvers"):
        if name in own:
            own[name] = _texts(known.key, name, own[name])
    fill_in_attempts(own)
    own["spec"] = {name: value for name, value in spec.items() if value is not None}
    changed = replace(known, **own)
    if changes.keys() & {"argv", "arg_schema"}:
        _ensure_placeholders(changed)
    return changed


def _ensure_placeholders(definition: Definition) -> None:
    if definition.kind is Kind.COMMAND and definition.spec.get("argv"):
        template = read_command(definition.key, definition.spec).template
        ensure_fields_known(definition.key, template, definition.arg_schema)


def _kind(kind: str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        raise InvalidOption("kind", f"must be one of {', '.join(Kind)}, not {kind!r}") from None


def _texts(key: str, name: str, values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidDefinition(f"{key}: {name} must be a list of strings", field=name)
    return tuple(values or ())


_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "backoff": tuple(BACKOFF_COLUMNS.values()),
    "rate": ("rate_count", "rate_period"),
    "limit": ("limit_name",),
}


def columns_of(kind: Kind, field: str) -> tuple[str, ...]:
    return ("spec",) if field in SPEC_FIELDS[kind] else _COLUMNS.get(field, (field,))


async def ensure_known(session: Session, keys: Iterable[str]) -> None:
    """Raise UnknownDefinition for the first that no active definition has."""
    _ensure_among(keys, await run_call(session, store.keys()))


def find_all(keys: Iterable[str]) -> Plan[None]:
    """The same as a plan."""
    _ensure_among(keys, (yield Statement(store.keys())))


async def unknown(session: Session, key: str) -> UnknownDefinition:
    """The error for a key that no active definition has, with what may have been meant."""
    return _unknown(key, await run_call(session, store.keys()))


def suggest(key: str) -> Plan[UnknownDefinition]:
    """The same as a plan."""
    return _unknown(key, (yield Statement(store.keys())))


def _ensure_among(keys: Iterable[str], known: Sequence[tuple[Any, ...]]) -> None:
    active = {key for key, is_active in known if is_active}
    for key in keys:
        if key not in active:
            raise _unknown(key, known)


def _unknown(key: str, known: Sequence[tuple[Any, ...]]) -> UnknownDefinition:
    if (key, False) in [tuple(row) for row in known]:
        return InactiveDefinition(key)
    return UnknownDefinition(key, closest(key, [each for each, is_active in known if is_active]))


def ensure_registered(conflicts: Iterable[tuple[str, str]]) -> None:
    """Refuse handlers whose key belongs to a definition that needs no code."""
    for key, kind in conflicts:
        raise InvalidDefinition(
            f"{key}: is a definition of the kind {kind}; give the handler another key"
        )


class DeclaredDefinitions:
    """The definitions that a program declares in code, and how many of them the database has."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._registered = 0

    @property
    def are_registered(self) -> bool:
        """Handlers are only ever added, so counting them is enough."""
        return len(self._handlers) == self._registered

    def register(self) -> Plan[None]:
        """Store them, once; refuses a handler whose key belongs to a definition without code."""
        if self.are_registered:
            return
        count = len(self._handlers)
        declared = [handler.definition for handler in self._handlers.values()]
        ensure_registered((yield Statement(store.sync(declared))))
        self._registered = count
