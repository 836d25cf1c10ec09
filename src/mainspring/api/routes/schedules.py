"""/schedules: by name."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Filter, InstantIn, Page
from mainspring.api.models.schedules import (
    Disabling,
    FilledModel,
    Filling,
    FireModel,
    Firing,
    NewSchedule,
    Pause,
    Range,
    ScheduleChanges,
    ScheduleModel,
    SlotModel,
    TriggeredModel,
    spec_facts,
)
from mainspring.api.responses import (
    large_page,
    nothing,
    page,
    place,
    read_cursor,
    read_place,
    reply,
    tagged,
)
from mainspring.api.routes.parameters import (
    After,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Named,
    NameFilter,
    once,
)
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.access.roles import Role
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.schedules.model import ScheduleState
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.services import backfills, definitions, schedules
from mainspring.services.schedules import Scope
from mainspring.store.slots import Slot

router = Router(prefix="/schedules", tags=["schedules"])

Reader = Annotated[RequestContext, Depends(reading("schedules"))]
Writer = Annotated[RequestContext, Depends(writing("schedules"))]

# SQL that runs with the rights of the scheduler, which sees all tenants.
_OF_OPERATORS = ("condition_sql", "gauge_sql", "condition_role")


def _scope(context: RequestContext, session: TransactionSession | None = None) -> Scope:
    return Scope.of(session or context.session, context.tenant_id, context.server.database)


async def _shown(scope: Scope, state: ScheduleState, status: int = 200) -> Response:
    next_run_at = await schedules.following(scope, state)
    return tagged(ScheduleModel.of(state, next_run_at), spec_facts(state.spec), status)


def _ensure_may_say(context: RequestContext, facts: dict[str, Any]) -> None:
    if context.caller.role is Role.OPERATOR:
        return
    for name in _OF_OPERATORS:
        if facts.get(name) is not None:
            raise Forbidden(
                f"only an operator may set {name}, which runs SQL outside tenant isolation"
            )


@router.get("", response_model=Page[ScheduleModel])
async def list_schedules(
    context: Reader,
    is_enabled: Annotated[
        bool | None, Query(description="Only enabled schedules, or disabled ones.")
    ] = None,
    definition: Annotated[
        NameFilter, Query(description="Only schedules of these definitions.")
    ] = None,
    after: After = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List schedules by name. A page has at most 4 MiB: it may be shorter than `limit`, and
    `next_cursor` continues."""

    async def load(last_seen: Sequence[str | None], count: int) -> Sequence[ScheduleState]:
        name, after_tenant = last_seen
        asked = {
            "after": name or after,
            "enabled": is_enabled,
            "definition": definition,
            "limit": count,
        }
        if context.listed_tenant is None:
            return await schedules.list_everywhere(
                context.session, **asked, after_tenant=after_tenant
            )
        return await schedules.list_schedules(_scope(context), **asked)

    return await large_page(
        load,
        ScheduleModel.of,
        lambda state: place(state.spec.name, state.spec.tenant_id),
        after=read_place(cursor),
        limit=limit,
    )


@router.post("", response_model=ScheduleModel, status_code=201)
async def create_schedule(
    context: Writer,
    schedule: Annotated[NewSchedule, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a schedule."""
    facts = {**schedule.read(), "tenant_id": context.tenant_id}
    _ensure_may_say(context, facts)
    # In a thread, since a calendar may take a while to read and to find a slot in.
    spec = await asyncio.to_thread(schedules.make_spec, facts)

    async def make(session: TransactionSession) -> Response:
        scope = _scope(context, session)
        await definitions.ensure_known(scope.committed, [spec.definition])
        has_zone = facts.get("zone") is not None
        return await _shown(scope, await schedules.create(scope, spec, has_zone=has_zone), 201)

    return await once(context, idempotency_key, make)


@router.get("/{name}", response_model=ScheduleModel)
async def get_schedule(context: Reader, name: Named) -> Response:
    """Get a schedule with its results so far."""
    scope = _scope(context)
    return await _shown(scope, await schedules.get(scope, name))


@router.patch("/{name}", response_model=ScheduleModel)
async def update_schedule(
    context: Writer,
    name: Named,
    changes: Annotated[ScheduleChanges, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Update some fields, if the schedule still matches If-Match."""
    facts = changes.read()
    _ensure_may_say(context, facts)
    async with context.editing("schedule", name) as session:
        scope = _scope(context, session)
        context.ensure_unchanged(spec_facts((await schedules.get(scope, name)).spec), if_match)
        if facts.get("definition") is not None:
            await definitions.ensure_known(scope.committed, [facts["definition"]])
        return await _shown(scope, await schedules.update(scope, name, facts))


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete_schedule(
    context: Writer,
    name: Named,
    if_match: IfMatch = None,
) -> Response:
    """Delete a schedule with its history; its jobs are kept."""
    async with context.editing("schedule", name) as session:
        scope = _scope(context, session)
        context.ensure_unchanged(spec_facts((await schedules.get(scope, name)).spec), if_match)
        await schedules.delete(scope, name)
    return nothing()


@router.post("/{name}/enable", response_model=ScheduleModel)
async def enable_schedule(context: Writer, name: Named) -> Response:
    """Enable a schedule from now on; its failure count is reset."""
    scope = _scope(context)
    return await _shown(scope, await schedules.update(scope, name, {"enabled": True}))


@router.post("/{name}/disable", response_model=ScheduleModel)
async def disable_schedule(
    context: Writer, name: Named, why: Annotated[Disabling | None, Body()] = None
) -> Response:
    """Disable a schedule; the reason is shown until it is enabled."""
    changes = {"enabled": False, "disabled_reason": why.reason if why else None}
    scope = _scope(context)
    return await _shown(scope, await schedules.steer(scope, name, changes))


@router.post("/{name}/pause", response_model=ScheduleModel)
async def pause_schedule(
    context: Writer, name: Named, given: Annotated[Pause | None, Body()] = None
) -> Response:
    """Pause a schedule; slots missed during the pause are not caught up."""
    if given is None or given.until is None:
        changes = {"enabled": False, "disabled_reason": "paused"}
        scope = _scope(context)
        return await _shown(scope, await schedules.steer(scope, name, changes))
    scope = _scope(context)
    return await _shown(scope, await schedules.pause(scope, name, given.until))


@router.post("/{name}/resume", response_model=ScheduleModel)
async def resume_schedule(context: Writer, name: Named) -> Response:
    """Resume a paused schedule, from now on."""
    changes = {"enabled": True, "paused_until": None}
    scope = _scope(context)
    return await _shown(scope, await schedules.update(scope, name, changes))


@router.post("/{name}/trigger", response_model=TriggeredModel)
async def trigger_schedule(
    context: Writer, name: Named, firing: Annotated[Firing | None, Body()] = None
) -> Response:
    """Fire a schedule now, in a slot of its own or in a past one that has no job."""
    asked = firing or Firing()
    wait = timedelta(seconds=asked.wait) if asked.wait else None
    fired = await schedules.trigger(
        _scope(context), name, force=asked.force, wait=wait, slot=asked.slot
    )
    return reply(TriggeredModel.of(fired))


@router.post("/{name}/backfill", response_model=Filling)
async def backfill_schedule(
    context: Writer, name: Named, given: Annotated[Range, Body()]
) -> Response:
    """Enqueue the past slots in a range that had no job."""
    filled = await backfills.backfill(
        _scope(context), name, given.start, end=given.end, limit=given.limit, dry_run=given.dry_run
    )
    items = [
        FilledModel.model_construct(slot_at=slot_at, job_id=job_id) for slot_at, job_id in filled
    ]
    return reply(Filling.model_construct(items=items))


@router.get("/{name}/history", response_model=Page[SlotModel])
async def list_slots(
    context: Reader,
    name: Named,
    outcome: Annotated[
        Filter[SlotOutcome] | None, Query(description="Only slots with one of these outcomes.")
    ] = None,
    before: Annotated[InstantIn | None, Query(description="Only slots before this time.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List the slots of a schedule, newest first."""
    scope, reached = _scope(context), read_cursor(cursor, int)

    async def load(place: int | None, count: int) -> list[Slot]:
        until = before if place is None else _instant(place)
        return await schedules.history(scope, name, before=until, outcome=outcome, limit=count)

    return await large_page(load, SlotModel.of, _place_of_slot, after=reached, limit=limit)


@router.get("/{name}/preview", response_model=Page[FireModel])
async def preview_schedule(
    context: Reader,
    name: Named,
    after: Annotated[
        InstantIn | None, Query(description="Only slots after this time; now if omitted.")
    ] = None,
    limit: Limit = 10,
    cursor: Cursor = None,
) -> Response:
    """List the next slots of a schedule, as if it were enabled."""
    reached = read_cursor(cursor, int)
    start = after if reached is None else _instant(reached)
    found = await schedules.preview(_scope(context), name, count=limit, after=start)
    following = _microseconds(found[-1].at) if len(found) == limit else None
    return page(found, FireModel.of, following=following, model=Page[FireModel])


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _place_of_slot(slot: Slot) -> int:
    return _microseconds(slot.scheduled_for)


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _instant(microseconds: int) -> datetime:
    # A cursor that someone made up must not lead out of the calendar.
    return _EPOCH + timedelta(microseconds=min(microseconds, 4_000_000_000_000_000))
