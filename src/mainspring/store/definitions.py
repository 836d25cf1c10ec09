"""Statements on definitions."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.definitions import Definition, DefinitionState
from mainspring.domain.retry import Backoff
from mainspring.domain.types import Kind

_STATEMENTS = load("definitions")

Version = tuple[str, int]


def sync(definitions: Sequence[Definition]) -> Call:
    """Store what a program declares; each row is (key, kind) of one that is not ours to store."""
    return Call(
        _STATEMENTS["sync"].sql,
        {
            "keys": [definition.key for definition in definitions],
            "descriptions": [definition.description for definition in definitions],
            "queues": [definition.queue for definition in definitions],
            "priorities": [definition.priority for definition in definitions],
            "max_attempts": [definition.max_attempts for definition in definitions],
            "timeouts": [definition.timeout for definition in definitions],
            "bases": [definition.backoff.base for definition in definitions],
            "factors": [definition.backoff.factor for definition in definitions],
            "caps": [definition.backoff.cap for definition in definitions],
            "jitters": [definition.backoff.jitter for definition in definitions],
            "schemas": [_json_or_null(definition.arg_schema) for definition in definitions],
            "tags": [orjson.dumps(definition.tags).decode() for definition in definitions],
            "retentions": [definition.retention for definition in definitions],
        },
    )


def keys() -> Call:
    """Each row is (key,) of an active definition."""
    return Call(_STATEMENTS["keys"].sql, {})


def schema_of(key: str) -> Call:
    """The row is (arg_schema,), as a dict or None; no row if there is no such definition."""
    return Call(_STATEMENTS["schema_of"].sql, {"key": key})


def create(facts: Mapping[str, Any]) -> Call:
    """One row, or none if the key is taken."""
    return Call(_STATEMENTS["create_definition"].sql, {"facts": orjson.dumps(facts).decode()})


def update(key: str, changes: Mapping[str, Any]) -> Call:
    """One row, or none if there is no such definition."""
    params = {"key": key, "changes": orjson.dumps(changes).decode()}
    return Call(_STATEMENTS["update_definition"].sql, params)


def get(key: str) -> Call:
    """The row is (the definition as text,), for `read_state`; no row if there is none."""
    return Call(_STATEMENTS["get_definition"].sql, {"key": key})


def list_definitions(
    *, after: str | None, kind: Kind | None, active: bool | None, limit: int
) -> Call:
    """Each row is (the definition as text,), for `read_state`."""
    params = {"after": after, "kind": kind, "active": active, "limit": limit}
    return Call(_STATEMENTS["list_definitions"].sql, params)


def read_state(text: str) -> DefinitionState:
    facts = orjson.loads(text)
    retention = facts["retention"]
    definition = Definition(
        key=facts["key"],
        queue=facts["queue"],
        priority=facts["priority"],
        max_attempts=facts["max_attempts"],
        timeout=timedelta(seconds=facts["timeout"]),
        backoff=Backoff(
            timedelta(seconds=facts["backoff_base"]),
            facts["backoff_factor"],
            timedelta(seconds=facts["backoff_cap"]),
            timedelta(seconds=facts["backoff_jitter"]),
        ),
        description=facts["description"],
        kind=Kind(facts["kind"]),
        arg_schema=facts["arg_schema"],
        spec=facts["spec"],
        tags=tuple(facts["tags"]),
        retention=None if retention is None else timedelta(seconds=retention),
    )
    return DefinitionState(
        definition,
        version=facts["version"],
        is_active=facts["is_active"],
        created_at=_instant(facts["created_at"]),
        updated_at=_instant(facts["updated_at"]),
    )


async def load_versions(
    connection: AsyncConnection[Any], wanted: Collection[Version]
) -> dict[Version, Definition]:
    """The definitions without code among them, as they were at those versions."""
    params = {
        "keys": [key for key, _ in wanted],
        "versions": [version for _, version in wanted],
    }
    cursor = await connection.execute(_STATEMENTS["load_versions"].sql, params)
    return {(row[0], row[1]): _version(row) for row in await cursor.fetchall()}


def _version(row: tuple[Any, ...]) -> Definition:
    key, _, kind, timeout, base, factor, cap, jitter, arg_schema, spec = row
    return Definition(
        key=key,
        timeout=timeout,
        backoff=Backoff(base, factor, cap, jitter),
        kind=Kind(kind),
        arg_schema=arg_schema,
        spec=spec,
    )


def _json_or_null(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
