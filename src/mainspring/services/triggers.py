"""Use cases of triggers: check what was asked, say it to the store, tell what came of it."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring.db.plans import arun
from mainspring.db.sessions import ServiceSession, Session
from mainspring.domain import triggers as rules
from mainspring.domain.errors import (
    DuplicateTrigger,
    InvalidEvent,
    InvalidOption,
    TriggerNotFound,
)
from mainspring.domain.events import ensure_name, example_name, matches
from mainspring.domain.filters import Several, texts
from mainspring.domain.suggestions import closest, did_you_mean
from mainspring.domain.triggers import Occurrence, Trigger, TriggerState, ensure_trigger
from mainspring.domain.types import TenantId
from mainspring.services import definitions
from mainspring.services.drafts import checking_draft
from mainspring.services.payloads import PayloadRules, encode_payload, ensure_affordable
from mainspring.services.schemas import read_rules, stored_rules
from mainspring.store import triggers as store

FIELDS = tuple(part.name for part in fields(Trigger) if part.name != "name")
NULLABLE = ("dedupe_window", "queue", "priority")


# Checking


def make(name: str, given: Mapping[str, Any]) -> Trigger:
    """A whole trigger from the fields that are not None; raises what is wrong with it."""
    asked = {field: value for field, value in given.items() if value is not None}
    _ensure_fields(asked)
    trigger = Trigger(**{"event": "", "definition": "", **asked, "name": name})
    ensure_trigger(trigger)
    return trigger


def _ensure_fields(given: Iterable[str]) -> None:
    for name in given:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            raise InvalidOption(name, f"is not a field of a trigger{hint}")


# Writing


async def create(
    session: ServiceSession, tenant_id: TenantId, trigger: Trigger, *, is_enabled: bool = True
) -> TriggerState:
    await _ensure_payload(session, trigger)
    facts = _facts(trigger, FIELDS, session.settings.max_payload_bytes)
    facts |= {"name": trigger.name, "is_enabled": is_enabled}
    if not await store.create(session, tenant_id, facts):
        raise DuplicateTrigger(trigger.name)
    return await get(session, tenant_id, trigger.name)


async def changed(
    session: Session, tenant_id: TenantId, name: str, *, changes: Mapping[str, Any]
) -> Trigger:
    """The trigger as it would be; None empties a field that may be empty."""
    _ensure_fields(changes)
    trigger = replace((await get(session, tenant_id, name)).trigger, **changes)
    ensure_trigger(trigger)
    return trigger


async def update(
    session: ServiceSession, tenant_id: TenantId, trigger: Trigger, *, columns: Iterable[str]
) -> TriggerState:
    columns = set(columns)
    if columns & {"payload", "definition"}:
        await _ensure_payload(session, trigger)
    facts = _facts(trigger, columns, session.settings.max_payload_bytes)
    return await _write(session, tenant_id, trigger.name, facts=facts)


async def _ensure_payload(session: ServiceSession, trigger: Trigger) -> None:
    """Refuse what the definition would not take, whatever the event holds."""
    payload_rules = await stored_rules(session, trigger.definition)
    await checking_draft(trigger.payload, payload_rules).arun(None)


async def set_enabled(
    session: Session, tenant_id: TenantId, name: str, *, is_enabled: bool
) -> TriggerState:
    """Unchecked, so that a trigger gone wrong can be stopped."""
    return await _write(session, tenant_id, name, facts={"is_enabled": is_enabled})


async def _write(
    session: Session, tenant_id: TenantId, name: str, *, facts: Mapping[str, Any]
) -> TriggerState:
    if not await store.update(session, tenant_id, name, changes=facts):
        raise await missing(session, tenant_id, name)
    return await get(session, tenant_id, name)


async def delete(session: Session, tenant_id: TenantId, name: str) -> None:
    if not await store.delete(session, tenant_id, name):
        raise await missing(session, tenant_id, name)


def _facts(trigger: Trigger, columns: Iterable[str], limit: int) -> dict[str, Any]:
    """The fields as the database reads them from JSON."""
    facts = {name: getattr(trigger, name) for name in columns}
    if isinstance(window := facts.get("dedupe_window"), timedelta):
        facts["dedupe_window"] = f"{window.total_seconds()} seconds"
    if "payload" in facts:
        facts["payload"] = dict(trigger.payload)
        encode_payload(facts["payload"], limit)
    return facts


# Reading


async def get(session: Session, tenant_id: TenantId, name: str) -> TriggerState:
    state = await store.get(session, tenant_id, name)
    if state is None:
        raise await missing(session, tenant_id, name)
    return state


async def list_triggers(
    session: Session,
    tenant_id: TenantId | None,
    *,
    after: str | None = None,
    after_tenant: str | None = None,
    enabled: bool | None = None,
    event: Several[str] = None,
    definition: Several[str] = None,
    limit: int = 100,
) -> list[TriggerState]:
    """By name, of all tenants if none is given; with events, only those that match one."""
    return await store.list_triggers(
        session,
        tenant_id,
        after=after,
        after_tenant=after_tenant,
        enabled=enabled,
        events=texts("event", event),
        definitions=texts("definition", definition),
        limit=limit,
    )


async def missing(session: Session, tenant_id: TenantId, name: str) -> TriggerNotFound:
    return TriggerNotFound(name, closest(name, await store.names(session, tenant_id)))


# Rendering


async def rehearse(
    session: ServiceSession, state: TriggerState, context: Mapping[str, Any], *, event: str | None
) -> bytes:
    """The JSON text of the payload that such an event would make; nothing is enqueued."""
    trigger = state.trigger
    name = example_name(trigger.event) if event is None else event
    ensure_name(name)
    if not matches(trigger.event, name):
        raise InvalidEvent("name", f"{name!r} does not match {trigger.event!r}")
    await definitions.ensure_known(session, [trigger.definition])
    payload_rules = await arun(read_rules(trigger.definition), session)
    occurrence = Occurrence(
        event_id=0,
        name=name,
        tenant_id=state.tenant_id,
        emitted_at=datetime.now(UTC),
        context=context,
    )
    limit = session.settings.max_payload_bytes
    # In a thread, since a large context would hold up the requests of others.
    return await asyncio.to_thread(_render, trigger, occurrence, payload_rules, limit=limit)


def _render(
    trigger: Trigger, occurrence: Occurrence, payload_rules: PayloadRules, *, limit: int
) -> bytes:
    source = occurrence.source(limit)
    rendered = rules.render(trigger.payload, source, trigger.unknown_paths, largest=limit)
    text = encode_payload(rendered, limit)
    ensure_affordable(payload_rules.count_steps([text]))
    payload_rules.ensure(rendered)
    return text
