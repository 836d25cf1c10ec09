"""Statements on events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain import documents
from mainspring.domain.events import Dispatch, DispatchOutcome, Event
from mainspring.domain.types import EventId, TenantId

_STATEMENTS = load("events")
BATCH = 50
_MOST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that waits; `context` is text, and may be unreadable."""

    event_id: int
    tenant_id: str
    name: str
    context: str
    correlation_id: str | None
    emitted_at: datetime
    replays: int
    replay_trigger: str | None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came of one trigger for one event."""

    trigger_name: str
    event_id: int
    outcome: str
    job_id: int | None
    error: str | None


def emit(
    tenant_id: TenantId, name: str, context: str, *, correlation_id: str | None = None
) -> Call:
    """The row is (event_id,)."""
    params = {
        "tenant_id": tenant_id,
        "name": name,
        "context": context,
        "correlation_id": correlation_id,
    }
    return Call(_STATEMENTS["emit_event"].sql, params)


async def replay(
    session: Session, tenant_id: TenantId, event_id: EventId, *, trigger: str | None
) -> None:
    params = {"tenant_id": tenant_id, "event_id": event_id, "trigger": trigger}
    await session.execute(_STATEMENTS["replay_event"].sql, params)


async def get(session: Session, tenant_id: TenantId, event_id: EventId) -> Event | None:
    params = {"tenant_id": tenant_id, "event_id": event_id}
    row = await fetch_one(session, _STATEMENTS["get_event"].sql, params)
    return None if row is None else _event(row[0])


async def list_events(
    session: Session,
    tenant_id: TenantId | None,
    *,
    patterns: Sequence[str],
    handled: bool | None,
    failed: bool | None,
    before: EventId | None,
    limit: int,
) -> list[Event]:
    """Newest first; of all tenants if none is given."""
    params: dict[str, object] = {
        "patterns": list(patterns) or None,
        "handled": handled,
        "failed": failed,
        "before": before,
        "limit": limit,
    }
    if tenant_id is None:
        sql = _STATEMENTS["list_events_everywhere"].sql
    else:
        sql, params["tenant_id"] = _STATEMENTS["list_events"].sql, tenant_id
    return [_event(text) for (text,) in await fetch_all(session, sql, params)]


async def next_events(
    session: Session, *, after: str = "", limit: int = BATCH, holds: bool = False
) -> list[Waiting]:
    """Events of the tenants after the given one, in the order they happened. With `holds`, other
    dispatchers that ask so leave them alone until `release_events`."""
    params = {"after": after, "limit": limit, "most_bytes": _MOST_BYTES, "holds": holds}
    rows = await fetch_mappings(session, _STATEMENTS["next_events"].sql, params)
    return [Waiting(**row) for row in rows]


async def release_events(session: Session) -> None:
    await session.execute(_STATEMENTS["release_events"].sql)


async def lock_events(session: Session, events: Sequence[Waiting]) -> set[int]:
    """The ids of those that still wait and that nobody else has locked; they are ours until the
    transaction ends."""
    params = {
        "event_ids": [event.event_id for event in events],
        "replays": [event.replays for event in events],
    }
    return {row[0] for row in await fetch_all(session, _STATEMENTS["lock_events"].sql, params)}


async def dispatch(
    session: Session,
    event_ids: Sequence[int],
    plans: Sequence[Mapping[str, Any]],
) -> list[Dispatched]:
    """Write what was planned for events that we hold; they are handled then."""
    params = {"event_ids": list(event_ids), "plans": orjson.dumps(list(plans)).decode()}
    rows = await fetch_mappings(session, _STATEMENTS["dispatch"].sql, params)
    return [Dispatched(**row) for row in rows]


async def has_unhandled(session: Session) -> bool:
    cursor = await session.execute(_STATEMENTS["has_unhandled"].sql)
    row = await cursor.fetchone()
    return bool(row and row[0])


def _event(text: str) -> Event:
    facts = documents.read(text)
    handled_at = facts["handled_at"]
    return Event(
        id=EventId(facts["event_id"]),
        tenant_id=facts["tenant_id"],
        name=facts["name"],
        context=facts["context"],
        correlation_id=facts["correlation_id"],
        emitted_at=_instant(facts["emitted_at"]),
        handled_at=None if handled_at is None else _instant(handled_at),
        replays=facts["replays"],
        jobs=facts["jobs"],
        duplicates=facts["duplicates"],
        failures=facts["failures"],
        last_error=facts["last_error"],
        dispatches=tuple(_dispatch(each) for each in facts["dispatches"]),
    )


def _dispatch(facts: Mapping[str, Any]) -> Dispatch:
    return Dispatch(
        trigger=facts["trigger_name"],
        replay=facts["replay"],
        outcome=DispatchOutcome(facts["outcome"]),
        job_id=facts["job_id"],
        error=facts["error"],
        dispatched_at=_instant(facts["dispatched_at"]),
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
