"""/events."""

from collections.abc import Sequence
from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import IdIn, Page
from mainspring.api.models.events import EmittedModel, EventModel, NewEvent, Replay
from mainspring.api.responses import large_page, read_cursor, reply
from mainspring.api.routes.parameters import (
    Cursor,
    IdempotencyKey,
    Limit,
    NameFilter,
    Number,
    once,
)
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.plans import arun
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.events import Event
from mainspring.domain.types import EventId
from mainspring.services import events

router = Router(prefix="/events", tags=["events"])
Reader = Annotated[RequestContext, Depends(reading("events"))]
Writer = Annotated[RequestContext, Depends(writing("events"))]
TriggerWriter = Annotated[RequestContext, Depends(writing("triggers"))]


@router.get("", response_model=Page[EventModel])
async def list_events(
    context: Reader,
    name: Annotated[
        NameFilter, Query(description="Only events with these names or patterns.")
    ] = None,
    is_handled: Annotated[
        bool | None, Query(description="Only events that were dispatched, or that wait.")
    ] = None,
    has_failed: Annotated[
        bool | None,
        Query(description="Only events for which a trigger failed, or for which none did."),
    ] = None,
    before: Annotated[IdIn | None, Query(description="Only events older than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List events, newest first; the name may be a pattern. A page has at most 4 MiB: it may be
    shorter than `limit`, and `next_cursor` continues."""

    async def load(older: EventId | None, count: int) -> Sequence[Event]:
        return await events.list_events(
            context.session,
            context.listed_tenant,
            name=name,
            handled=is_handled,
            failed=has_failed,
            before=older,
            limit=count,
        )

    older = read_cursor(cursor, int) or before
    return await large_page(load, EventModel.of, lambda event: event.id, after=older, limit=limit)


@router.post("", response_model=EmittedModel, status_code=201)
async def emit_event(
    context: Writer, event: Annotated[NewEvent, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Emit an event."""
    plan = events.emit(
        event.name,
        event.context,
        tenant_id=context.tenant_id,
        correlation_id=event.correlation_id,
        limit=context.settings.max_payload_bytes,
    )

    async def make(session: TransactionSession) -> Response:
        return reply(EmittedModel.model_construct(id=await arun(plan, session)), 201)

    return await once(context, idempotency_key, make)


@router.get("/{event_id:int}", response_model=EventModel)
async def get_event(context: Reader, event_id: Number) -> Response:
    """Get an event with what each trigger did with it."""
    event = await events.get(context.session, context.tenant_id, EventId(event_id))
    return reply(EventModel.of(event))


@router.post("/{event_id:int}/replay", response_model=EventModel)
async def replay_event(
    context: TriggerWriter,
    event_id: Number,
    asked: Annotated[Replay | None, Body()] = None,
) -> Response:
    """Dispatch a handled event again, to all of its triggers or to one."""
    event = await events.replay(
        context.session,
        context.tenant_id,
        EventId(event_id),
        trigger=asked.trigger if asked else None,
    )
    return reply(EventModel.of(event))
