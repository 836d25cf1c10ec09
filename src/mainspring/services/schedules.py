"""Use cases of schedules: check what was asked, say it to the store, tell what came of it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from mainspring.db.blocking_sessions import BlockingSession
from mainspring.db.database import Database
from mainspring.db.sessions import ServiceSession, Session
from mainspring.domain.errors import (
    InputError,
    InvalidPayload,
    InvalidSchedule,
    ScheduleNotFound,
)
from mainspring.domain.filters import Several, words
from mainspring.domain.jobs.options import ensure_reason
from mainspring.domain.schedules import timing
from mainspring.domain.schedules.fields import ensure_kinds
from mainspring.domain.schedules.model import (
    FIELD_NAMES,
    ScheduleSpec,
    ScheduleState,
    ensure_spec,
)
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.schedules.timing import Fire
from mainspring.domain.suggestions import closest
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.services.conditions import ensure_condition
from mainspring.services.drafts import checking_draft, ensure_draft
from mainspring.services.next_slots import next_fires, planned, searched, timing_of
from mainspring.services.payloads import encode_payload
from mainspring.services.schemas import stored_rules
from mainspring.services.secrets import Owner, encrypt_changes, encrypt_schedules
from mainspring.settings import Settings
from mainspring.store import schedules as store
from mainspring.store import slots as slot_store
from mainspring.store import tenants
from mainspring.store.schedules import Triggered
from mainspring.store.slots import Slot

T = TypeVar("T")

_TIMINGS = ("cron", "every", "at")
_CONDITIONS = ("launcher", "condition_sql", "gauge_sql")
_GAUGE = ("gauge_lower", "gauge_upper", "gauge_bounds")
_TIMING = frozenset((*_TIMINGS, "zone", "calendar", "starts_at", "ends_at"))
_PAYLOAD = frozenset(("payload", "definition", "launcher"))
_RUN_AS_ROLE = frozenset(("condition_role", "condition_sql", "gauge_sql"))


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose schedules are meant, and on which connection."""

    committed: Session
    """On a connection of ours, which sees only what is committed."""
    settings: Settings
    tenant_id: TenantId = DEFAULT_TENANT
    callers: Session | None = None
    """On the caller's own connection, if it is to be used."""
    database: Database | None = None
    """The one of the sessions, for a look whether a scheduler could check a condition."""

    @classmethod
    def of(
        cls, session: ServiceSession, tenant_id: TenantId, database: Database | None = None
    ) -> "Scope":
        return cls(session, session.settings, tenant_id, database=database)

    @property
    def session(self) -> Session:
        """What the schedules are changed on."""
        return self.committed if self.callers is None else self.callers

    @property
    def is_blocking(self) -> bool:
        """Nothing may be awaited then."""
        return isinstance(self.callers, BlockingSession)


# Checking


def make_spec(given: Mapping[str, Any]) -> ScheduleSpec:
    """A whole schedule from the fields that are not None; raises what is wrong with it."""
    asked = {name: value for name, value in given.items() if value is not None}
    ensure_kinds(asked)
    spec = ScheduleSpec(**{**asked, "payload": dict(asked.get("payload", {}))})
    ensure_spec(spec)
    return spec


def merge(spec: ScheduleSpec, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with what they entail: another way to time it replaces the one it had."""
    ensure_kinds(changes)
    merged = dict(changes)
    for group in (_TIMINGS, _CONDITIONS):
        if sum(changes.get(name) is not None for name in group) == 1:
            merged = dict.fromkeys(group) | merged
    if spec.gauge_sql is not None and merged.get("gauge_sql", spec.gauge_sql) is None:
        merged = dict.fromkeys(_GAUGE) | merged
    ensure_spec(replace(spec, **merged))
    return merged


def _facts(given: Mapping[str, Any], limit: int, *, is_stored: bool = False) -> dict[str, Any]:
    """The fields as the database reads them from JSON; `is_stored` is true of a payload whose
    secrets are encrypted."""
    facts = {name: _plain(value) for name, value in given.items()}
    if "payload" in facts:
        encode_payload(facts["payload"], limit, is_stored=is_stored)
    return facts


def spec_facts(spec: ScheduleSpec, limit: int) -> dict[str, Any]:
    """A schedule as the database reads it from JSON."""
    return _facts({name: getattr(spec, name) for name in FIELD_NAMES}, limit)


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return f"{value.total_seconds()} seconds"
        case datetime():
            return value.isoformat()
        case Mapping():
            return dict(value)
    return value


# Writing


async def create(scope: Scope, spec: ScheduleSpec, *, has_zone: bool = True) -> ScheduleState:
    """Without a zone of its own it has that of its tenant."""
    if not has_zone:
        spec = replace(spec, zone=await tenants.zone(scope.session, scope.tenant_id))
    if await _first_slot(scope, spec) is None:
        raise InvalidSchedule(
            "timing", "leaves no slot in the future; check ends_at and the calendar"
        )
    await ensure_condition(scope, spec)
    await _ensure_payload(scope, spec)
    facts = spec_facts(spec, scope.settings.max_payload_bytes)
    (encrypted,) = await encrypt_schedules(scope.committed, [facts], settings=scope.settings)
    await store.create(scope.session, scope.tenant_id, encrypted)
    return await get(scope, spec.name)


async def update(scope: Scope, name: str, changes: Mapping[str, Any]) -> ScheduleState:
    """Change some fields; the schedule is checked as a whole."""
    state = await get(scope, name)
    merged = await apart(scope, partial(merge, state.spec, changes))
    if merged.keys() & _TIMING:
        await _first_slot(scope, replace(state.spec, **merged))
    if merged.keys() & _RUN_AS_ROLE:
        await ensure_condition(scope, replace(state.spec, **merged))
    if merged.keys() & _PAYLOAD:
        await _ensure_payload(scope, replace(state.spec, **merged))
    _facts(merged, scope.settings.max_payload_bytes)
    known = Owner(scope.tenant_id, state.spec.definition)
    encrypted = await encrypt_changes(
        scope.session, merged, known, name=name, settings=scope.settings
    )
    return await steer(scope, name, encrypted)


async def _first_slot(scope: Scope, spec: ScheduleSpec) -> datetime | None:
    """Raises InvalidSchedule if it takes too long to find, so that no scheduler has to."""
    return await apart(scope, partial(timing.first_slot, spec.timing, datetime.now(UTC)))


def _ensure_found(spec: ScheduleSpec) -> None:
    """The same for what code declares; the error names the schedule."""
    try:
        if spec.calendar is not None:
            timing.first_slot(spec.timing, datetime.now(UTC))
    except InvalidSchedule as error:
        raise InvalidSchedule(error.field, f"{error.problem} (schedule {spec.name!r})") from None


async def _ensure_payload(scope: Scope, spec: ScheduleSpec) -> None:
    """Refuse what the definition would not take; a launcher makes the payload of each job."""
    if spec.launcher is None:
        rules = await stored_rules(scope.session, spec.definition)
        checking = checking_draft(spec.payload, rules)
        if scope.is_blocking:
            checking.run(None)
        else:
            await checking.arun(None)


async def _ensure_payloads(session: Session, specs: Sequence[ScheduleSpec]) -> None:
    """The same for many; the error names the schedule."""
    rules = {key: await stored_rules(session, key) for key in {each.definition for each in specs}}
    for spec in specs:
        try:
            ensure_draft(spec.payload, rules[spec.definition])
        except InvalidPayload as error:
            raise InvalidPayload(f"schedule {spec.name!r}: {error}") from None


async def steer(scope: Scope, name: str, changes: Mapping[str, Any]) -> ScheduleState:
    """Change some fields unchecked, so that a schedule gone wrong can be stopped."""
    ensure_reason(changes.get("disabled_reason") or "")
    facts = _facts(changes, scope.settings.max_payload_bytes, is_stored=True)
    try:
        await store.update(scope.session, scope.tenant_id, name, changes=facts)
    except ScheduleNotFound:
        raise await _missing(scope, name) from None
    return await get(scope, changes.get("name", name))


async def pause(scope: Scope, name: str, until: datetime) -> ScheduleState:
    ensure_kinds({"paused_until": until})
    if until <= datetime.now(UTC):
        raise InvalidSchedule("paused_until", "has already passed")
    return await steer(scope, name, {"paused_until": until})


async def delete(scope: Scope, name: str) -> None:
    if not await store.delete(scope.session, scope.tenant_id, name):
        raise await _missing(scope, name)


async def declare(
    session: ServiceSession, declared: Iterable[tuple[ScheduleSpec, bool]]
) -> Mapping[str, list[str]]:
    """Store what code declares, each with whether it overwrites; their names by what came of
    them."""
    limit = session.settings.max_payload_bytes
    declared = list(declared)
    for spec, _ in declared:
        _ensure_found(spec)
    await _ensure_payloads(session, [spec for spec, _ in declared if spec.launcher is None])
    specs = [
        {**spec_facts(spec, limit), "overwrite": is_overwriting}
        for spec, is_overwriting in declared
    ]
    facts = await encrypt_schedules(session, specs, settings=session.settings)
    names = defaultdict[str, list[str]](list)
    for name, outcome in await store.declare(session, facts):
        names[outcome].append(name)
    return names


async def trigger(
    scope: Scope,
    name: str,
    *,
    force: bool,
    wait: timedelta | None = None,
    slot: datetime | None = None,
) -> Triggered:
    """Fire a schedule now, or claim a past slot of it that has no job; `wait` is how long to wait
    for a scheduler where one must look."""
    if wait is not None and scope.callers is not None:
        raise InputError("cannot wait: a scheduler sees the slot only after you commit")
    if slot is not None:
        await _ensure_slot(scope, name, slot)
    try:
        triggered = await store.trigger(
            scope.session, scope.tenant_id, name, force=force, slot=slot
        )
    except ScheduleNotFound:
        raise await _missing(scope, name) from None
    if triggered.outcome is SlotOutcome.PENDING and wait is not None:
        return await _decided(scope, name, triggered, wait=wait)
    return triggered


async def _ensure_slot(scope: Scope, name: str, slot: datetime) -> None:
    """Refuse an instant at which the schedule is not due: a mistyped one would be an extra run."""
    if not isinstance(slot, datetime):
        raise InvalidSchedule("slot", f"must be a datetime, not {slot!r}")
    if slot.tzinfo is None:
        raise InvalidSchedule("slot", "needs a time zone, such as datetime(..., tzinfo=UTC)")
    state = await get(scope, name)
    known = await slot_store.get(scope.committed, scope.tenant_id, name, scheduled_for=slot)
    if known is not None or slot > datetime.now(UTC):
        return  # The database says what is wrong with it, if anything.
    if not await apart(scope, partial(_is_due, state, slot)):
        following = await preview(scope, name, count=1, after=slot)
        near = f"; the next one is {following[0].at:%Y-%m-%dT%H:%M:%SZ}" if following else ""
        shown = slot.astimezone(UTC)
        raise InvalidSchedule("slot", f"{shown:%Y-%m-%dT%H:%M:%SZ} is no slot of {name!r}{near}")


def _is_due(state: ScheduleState, slot: datetime) -> bool:
    """Whether the timing has the instant."""
    return slot in timing.slots_between(timing_of(state), slot, slot, limit=1)


async def _decided(scope: Scope, name: str, asked: Triggered, *, wait: timedelta) -> Triggered:
    until = time.monotonic() + wait.total_seconds()
    pause = 0.01
    while True:
        slot = await slot_store.get(
            scope.committed, scope.tenant_id, name, scheduled_for=asked.slot_at
        )
        if slot is not None and slot.outcome is not SlotOutcome.PENDING:
            message = slot.reason or f"job {slot.job_id} is enqueued"
            return Triggered(slot.outcome, asked.slot_at, slot.job_id, message)
        if slot is None or time.monotonic() >= until:
            return asked
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.25)


# Reading


async def get(scope: Scope, name: str) -> ScheduleState:
    state = await store.get(scope.session, scope.tenant_id, name)
    if state is None:
        raise await _missing(scope, name)
    return state


async def list_schedules(scope: Scope, **filters: Any) -> list[ScheduleState]:
    return await store.list_schedules(scope.committed, scope.tenant_id, **filters)


async def list_everywhere(session: Session, **filters: Any) -> list[ScheduleState]:
    """Those of all tenants."""
    return await store.list_schedules(session, None, **filters)


async def history(
    scope: Scope, name: str, *, before: datetime | None, outcome: Several[str], limit: int
) -> list[Slot]:
    """Newest first; raises ScheduleNotFound rather than answer with nothing."""
    chosen = words("outcome", outcome, SlotOutcome)
    found = await slot_store.list_slots(
        scope.committed, scope.tenant_id, name, before=before, outcomes=chosen, limit=limit
    )
    if not found:
        await get(scope, name)
    return found


async def preview(
    scope: Scope, name: str, *, count: int, after: datetime | None = None
) -> list[Fire]:
    """The next slots, within a century."""
    state = await get(scope, name)
    return await apart(scope, partial(next_fires, state, count, after))


async def apart(scope: Scope, work: Callable[[], T]) -> T:
    """In a thread, since slots that are rare or many would hold up the requests of others."""
    return work() if scope.is_blocking else await asyncio.to_thread(work)


async def following(scope: Scope, state: ScheduleState) -> datetime | None:
    """When it runs next: as it is planned, or as a scheduler would plan it."""
    if (known := planned(state)) is not None or not state.spec.enabled:
        return known
    return await apart(scope, partial(searched, state))


async def _missing(scope: Scope, name: str) -> ScheduleNotFound:
    known = await store.names(scope.committed, scope.tenant_id)
    return ScheduleNotFound(name, closest(name, known))
