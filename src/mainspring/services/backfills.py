"""Backfills: the past slots of a schedule that had no job get one."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from mainspring.domain import templates
from mainspring.domain.errors import InvalidOption, InvalidSchedule
from mainspring.domain.schedules import timing
from mainspring.domain.schedules.model import ScheduleSpec, template_values
from mainspring.domain.types import JobId, SlotTrigger
from mainspring.services.drafts import ensure_draft
from mainspring.services.next_slots import timing_of
from mainspring.services.payloads import prepare
from mainspring.services.schedules import Scope, apart, get
from mainspring.services.schemas import stored_rules
from mainspring.services.secrets import Owner
from mainspring.store import secrets as secret_store
from mainspring.store import slots as slot_store

Filled = tuple[datetime, JobId | None]

_MOST_FILLED = 100_000
MOST_BYTES = 64 * 1024 * 1024


async def backfill(
    scope: Scope, name: str, start: datetime, *, end: datetime, limit: int, dry_run: bool
) -> list[Filled]:
    """Enqueue the slots of a range that had no job; a dry run only says which they are."""
    state = await get(scope, name)
    _ensure_fillable(state.spec, start, end, limit=limit)
    find = partial(timing.slots_between, timing_of(state), start, end, limit=limit)
    due = await apart(scope, find)
    claimed = await slot_store.claimed(scope.session, scope.tenant_id, name, slots=due)
    unclaimed = [slot for slot in due if slot not in claimed]
    if dry_run or not unclaimed:
        return [(slot, None) for slot in unclaimed]
    payloads = await _payloads(scope, state.spec, unclaimed)
    filled = await slot_store.backfill(
        scope.session, scope.tenant_id, name, slots=unclaimed, payloads=payloads
    )
    return list(filled)


def _ensure_fillable(spec: ScheduleSpec, start: datetime, end: datetime, *, limit: int) -> None:
    if start.tzinfo is None or end.tzinfo is None:
        raise InvalidSchedule("range", "needs instants with a time zone")
    if end > datetime.now(UTC):
        raise InvalidSchedule("range", "ends in the future; only past slots can be backfilled")
    if not 1 <= limit <= _MOST_FILLED:
        raise InvalidOption("limit", f"must be from 1 to {_MOST_FILLED:,}, not {limit}")
    if spec.launcher is not None:
        raise InvalidSchedule(
            "launcher", f"{spec.name!r} cannot be backfilled; its payloads are made by a launcher"
        )


def ensure_size(size: int) -> None:
    if size > MOST_BYTES:
        raise InvalidSchedule(
            "range",
            f"its slots have payloads of more than {MOST_BYTES:,} bytes together; "
            "backfill fewer at a time",
        )


async def _payloads(
    scope: Scope, spec: ScheduleSpec, slots: list[datetime]
) -> list[Mapping[str, Any]] | None:
    """The payload of each slot where it is a template."""
    payload = await secret_store.real_payload(scope.session, scope.tenant_id, spec.name)
    rules = await stored_rules(scope.session, spec.definition)
    if not templates.has_template(payload):
        ensure_size(len(orjson.dumps(payload)) * len(slots))
        await apart(scope, partial(ensure_draft, payload, rules))
        return None
    owner, settings = Owner(scope.tenant_id, spec.definition), scope.settings

    def make() -> list[Mapping[str, Any]]:
        made, size = [], 0
        for slot in slots:
            values = template_values(spec, slot, SlotTrigger.BACKFILL, missed=0)
            rendered = templates.render(payload, values)
            ensure_draft(rendered, rules)
            stored = prepare(
                rendered, rules, owner, settings=settings, is_checked=False, is_stored=True
            )
            size += len(stored.text)
            ensure_size(size)
            made.append(stored.value)
        return made

    return await apart(scope, make)
