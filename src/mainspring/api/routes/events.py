"""/events and /triggers: what happened, and the rules that turn it into jobs."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Body, Depends, Query, Response

from mainspring.api.auth import Desk, reading, writing
from mainspring.api.models.base import IdIn, Page
from mainspring.api.models.events import (
    EmittedModel,
    EventModel,
    NewEvent,
    NewTrigger,
    Rehearsal,
    RehearsedModel,
    Replay,
    TriggerFields,
    TriggerModel,
)
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import nothing, page, place, read_cursor, read_place, reply, tagged
from mainspring.api.routes.parameters import (
    After,
    Cursor,
    IdempotencyKey,
    Limit,
    Named,
    Number,
    once,
)
from mainspring.db.database import Database
from mainspring.db.plans import arun
from mainspring.domain.errors import InvalidTrigger
from mainspring.domain.triggers import TriggerState
from mainspring.domain.types import EventId
from mainspring.services import definitions, events, triggers

router = APIRouter(prefix="/events", tags=["events"], route_class=JsonRoute)
trigger_router = APIRouter(prefix="/triggers", tags=["triggers"], route_class=JsonRoute)

Reader = Annotated[Desk, Depends(reading("events"))]
Writer = Annotated[Desk, Depends(writing("events"))]
TriggerReader = Annotated[Desk, Depends(reading("triggers"))]
TriggerWriter = Annotated[Desk, Depends(writing("triggers"))]
EventName = Annotated[str | None, Query(min_length=1, max_length=200)]


@router.get("", response_model=Page[EventModel])
async def list_events(
    desk: Reader,
    name: EventName = None,
    handled: bool | None = None,
    failed: bool | None = None,
    before: Annotated[IdIn | None, Query(description="Only events older than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Events, the newest first; the name may be a pattern."""
    older = read_cursor(cursor, int) or before
    found = await events.list_events(
        desk.database,
        desk.listed_tenant,
        name=name,
        handled=handled,
        failed=failed,
        before=None if older is None else EventId(older),
        limit=limit,
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, EventModel.of, following=following, model=Page[EventModel])


@router.post("", response_model=EmittedModel, status_code=201)
async def emit(
    desk: Writer, event: Annotated[NewEvent, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Say that something happened."""
    plan = events.emit(
        event.name,
        event.context,
        tenant_id=desk.tenant_id,
        correlation_id=event.correlation_id,
        limit=desk.settings.max_payload_bytes,
    )

    async def make(database: Database) -> Response:
        return reply(EmittedModel.model_construct(id=await arun(plan, database)), 201)

    return await once(desk, idempotency_key, make)


@router.get("/{event_id:int}", response_model=EventModel)
async def get_event(desk: Reader, event_id: Number) -> Response:
    """One event with what each trigger made of it."""
    event = await events.get(desk.database, desk.tenant_id, EventId(event_id))
    return reply(EventModel.of(event))


@router.post("/{event_id:int}/replay", response_model=EventModel)
async def replay(
    desk: TriggerWriter, event_id: Number, asked: Annotated[Replay | None, Body()] = None
) -> Response:
    """Give a handled event to its triggers once more, or to one of them."""
    event = await events.replay(
        desk.database,
        desk.tenant_id,
        EventId(event_id),
        trigger=asked.trigger if asked else None,
    )
    return reply(EventModel.of(event))


def _shown(state: TriggerState, status: int = 200) -> Response:
    return tagged(TriggerModel.of(state), _facts(state), status)


def _facts(state: TriggerState) -> object:
    return [str(state.trigger), state.is_enabled]


@trigger_router.get("", response_model=Page[TriggerModel])
async def list_triggers(
    desk: TriggerReader,
    event: EventName = None,
    definition: EventName = None,
    enabled: bool | None = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Triggers by name; with an event, those that match it."""
    last_seen, after_tenant = read_place(cursor)
    found = await triggers.list_triggers(
        desk.database,
        desk.listed_tenant,
        after=last_seen or after,
        after_tenant=after_tenant,
        enabled=enabled,
        event=event,
        definition=definition,
        limit=limit,
    )
    last = found[-1] if len(found) == limit else None
    following = last and place(last.name, last.tenant_id)
    return page(found, TriggerModel.of, following=following, model=Page[TriggerModel])


@trigger_router.post("", response_model=TriggerModel, status_code=201)
async def create(
    desk: TriggerWriter,
    trigger: Annotated[NewTrigger, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Enqueue a definition for each event that matches."""
    facts = trigger.given()
    name, enabled = facts.pop("name"), facts.pop("enabled", True)
    rule = triggers.make(name, facts)

    async def make(database: Database) -> Response:
        await definitions.ensure_known(database.arun, [rule.definition])
        made = await triggers.create(database, desk.tenant_id, rule, is_enabled=enabled)
        return _shown(made, 201)

    return await once(desk, idempotency_key, make)


@trigger_router.get("/{name}", response_model=TriggerModel)
async def get_trigger(desk: TriggerReader, name: Named) -> Response:
    """One trigger by its name."""
    return _shown(await triggers.get(desk.database, desk.tenant_id, name))


@trigger_router.patch("/{name}", response_model=TriggerModel)
async def update(
    desk: TriggerWriter, name: Named, changes: Annotated[TriggerFields, Body()]
) -> Response:
    """Change some fields, from the next event on, if the trigger is as If-Match says."""
    facts = changes.given()
    for field, value in facts.items():
        if value is None and field not in triggers.NULLABLE:
            raise InvalidTrigger(field, "must have a value")
    async with desk.editing("trigger", name) as held:
        desk.ensure_unchanged(_facts(await triggers.get(held, desk.tenant_id, name)))
        rule = await triggers.changed(held, desk.tenant_id, name, changes=facts)
        if "definition" in facts:
            await definitions.ensure_known(held.arun, [rule.definition])
        return _shown(await triggers.update(held, desk.tenant_id, rule, columns=facts))


@trigger_router.delete("/{name}", status_code=204, response_class=Response)
async def delete(desk: TriggerWriter, name: Named) -> Response:
    """Remove a trigger; its jobs stay."""
    async with desk.editing("trigger", name) as held:
        desk.ensure_unchanged(_facts(await triggers.get(held, desk.tenant_id, name)))
        await triggers.delete(held, desk.tenant_id, name)
    return nothing()


@trigger_router.post("/{name}/enable", response_model=TriggerModel)
async def enable(desk: TriggerWriter, name: Named) -> Response:
    """Let it see events again."""
    return _shown(await triggers.set_enabled(desk.database, desk.tenant_id, name, is_enabled=True))


@trigger_router.post("/{name}/disable", response_model=TriggerModel)
async def disable(desk: TriggerWriter, name: Named) -> Response:
    """Let it see no events."""
    return _shown(await triggers.set_enabled(desk.database, desk.tenant_id, name, is_enabled=False))


@trigger_router.post("/{name}/test", response_model=RehearsedModel)
async def rehearse(
    desk: TriggerReader, name: Named, asked: Annotated[Rehearsal | None, Body()] = None
) -> Response:
    """The payload that such an event would make; nothing is enqueued."""
    given = asked or Rehearsal()
    events.encode_context(given.context, desk.settings.max_payload_bytes)
    state = await triggers.get(desk.database, desk.tenant_id, name)
    text = await triggers.rehearse(desk.database, state, given.context, event=given.event)
    return reply(RehearsedModel.model_construct(payload=orjson.loads(text)))
