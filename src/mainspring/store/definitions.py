"""Statements on definitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.definitions import Definition, DefinitionState
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.limits import Rate
from mainspring.domain.types import Delivery, Kind
from mainspring.store.rows.definitions import (
    BACKOFF_COLUMNS,
    Schemas,
    read_backoff,
    read_schemas,
)

_STATEMENTS = load("definitions")

Version = tuple[str, int]


def sync(definitions: Sequence[Definition]) -> Call:
    """Store what a program declares; each row is (key, kind) of one that is not ours to store."""
    facts = [_facts(definition) for definition in definitions]
    return Call(_STATEMENTS["sync"].sql, {"facts": orjson.dumps(facts).decode()})


def keys() -> Call:
    """Each row is (key, is_active)."""
    return Call(_STATEMENTS["keys"].sql, {})


def schemas_of(key: str) -> Call:
    """The row is for `read_schemas`; no row if there is no such definition."""
    return Call(_STATEMENTS["schemas_of"].sql, {"key": key})


async def find_schemas(session: Session, key: str) -> Schemas | None:
    """None if there is no such definition."""
    row = await fetch_one(session, _STATEMENTS["schemas_of"].sql, {"key": key})
    return None if row is None else read_schemas(row)


async def create(session: Session, definition: Definition) -> bool:
    """False if the key is taken."""
    params = {"facts": orjson.dumps(_facts(definition)).decode()}
    return await fetch_one(session, _STATEMENTS["create_definition"].sql, params) is not None


async def update(
    session: Session, key: str, definition: Definition, *, columns: Collection[str]
) -> bool:
    """Change some columns to what the definition says; False if there is none with the key."""
    facts = _facts(definition)
    return await _update(session, key, {column: facts[column] for column in columns})


async def set_active(session: Session, key: str, *, is_active: bool) -> bool:
    """False if there is no such definition."""
    return await _update(session, key, {"is_active": is_active})


async def _update(session: Session, key: str, changes: Mapping[str, Any]) -> bool:
    params = {"key": key, "changes": orjson.dumps(changes).decode()}
    return await fetch_one(session, _STATEMENTS["update_definition"].sql, params) is not None


async def get(session: Session, key: str) -> DefinitionState | None:
    row = await fetch_one(session, _STATEMENTS["get_definition"].sql, {"key": key})
    return None if row is None else _state(row[0])


async def list_definitions(
    session: Session, *, after: str | None, kinds: Sequence[Kind], active: bool | None, limit: int
) -> list[DefinitionState]:
    chosen = [str(kind) for kind in kinds] or None
    params = {"after": after, "kinds": chosen, "active": active, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_definitions"].sql, params)
    return [_state(text) for (text,) in rows]


def _state(text: str) -> DefinitionState:
    facts = orjson.loads(text)
    retention = facts["retention"]
    definition = Definition(
        key=facts["key"],
        queue=facts["queue"],
        priority=facts["priority"],
        max_attempts=facts["max_attempts"],
        timeout=timedelta(seconds=facts["timeout"]),
        backoff=read_backoff(facts),
        description=facts["description"],
        kind=Kind(facts["kind"]),
        arg_schema=facts["arg_schema"],
        spec=facts["spec"],
        tags=tuple(facts["tags"]),
        retention=None if retention is None else timedelta(seconds=retention),
    )
    return DefinitionState(
        replace(definition, **_waits(facts)),
        version=facts["version"],
        is_active=facts["is_active"],
        created_at=_instant(facts["created_at"]),
        updated_at=_instant(facts["updated_at"]),
    )


def _waits(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What its jobs wait for; its own limit goes by no name."""
    count, name, path = facts["rate_count"], facts["limit_name"], facts["limit_by"]
    expiry = facts["approval_expiry"]
    return {
        "concurrency": facts["concurrency"],
        "key_concurrency": facts["key_concurrency"],
        "rate": None if count is None else str(Rate.of(count, facts["rate_period"])),
        "burst": facts["burst"],
        "limit": None if name == facts["key"] else name,
        "limit_by": None if path is None else ".".join(path),
        "approvals_needed": facts["approvals_needed"],
        "approval_expiry": None if expiry is None else timedelta(seconds=expiry),
        "approvers": tuple(facts["approvers"] or ()),
        "delivery": Delivery(facts["delivery"]),
    }


def _facts(definition: Definition) -> dict[str, Any]:
    """The columns of a definition, as the database reads them from JSON."""
    rate = None if definition.rate is None else Rate.parse(definition.rate)
    return {
        "key": definition.key,
        "kind": definition.kind,
        "description": definition.description,
        "queue": definition.queue,
        "priority": definition.priority,
        "max_attempts": definition.max_attempts,
        "timeout": _interval(definition.timeout),
        **_backoff_facts(definition.backoff),
        "arg_schema": definition.arg_schema,
        "spec": definition.spec,
        "tags": list(definition.tags),
        "retention": _interval(definition.retention),
        "concurrency": definition.concurrency,
        "key_concurrency": definition.key_concurrency,
        "rate_count": None if rate is None else rate.count,
        "rate_period": None if rate is None else _interval(rate.period),
        "burst": definition.burst,
        "limit_name": definition.limit,
        "limit_by": definition.limit_by.split(".") if definition.limit_by else None,
        "approvals_needed": definition.approvals_needed,
        "approval_expiry": _interval(definition.approval_expiry),
        "approvers": list(definition.approvers) or None,
        "delivery": definition.delivery,
    }


def _backoff_facts(backoff: Backoff) -> dict[str, Any]:
    values = {column: getattr(backoff, name) for name, column in BACKOFF_COLUMNS.items()}
    return {
        column: _interval(value) if isinstance(value, timedelta) else value
        for column, value in values.items()
    }


def _interval(duration: timedelta | None) -> str | None:
    return None if duration is None else f"{duration.total_seconds()} seconds"


async def load_versions(session: Session, wanted: Collection[Version]) -> dict[Version, Definition]:
    """The definitions without code among them, as they were at those versions."""
    params = {
        "keys": [key for key, _ in wanted],
        "versions": [version for _, version in wanted],
    }
    rows = await fetch_all(session, _STATEMENTS["load_versions"].sql, params)
    return {(row[0], row[1]): _version(row) for row in rows}


def _version(row: tuple[Any, ...]) -> Definition:
    key, _, kind, timeout, backoff, arg_schema, spec = row
    return Definition(
        key=key,
        timeout=timeout,
        backoff=read_backoff(orjson.loads(backoff)),
        kind=Kind(kind),
        arg_schema=arg_schema,
        spec=spec,
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
