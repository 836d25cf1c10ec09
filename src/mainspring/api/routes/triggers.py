"""/triggers: the rules that turn events into jobs."""

from collections.abc import Sequence
from typing import Annotated

import orjson

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page
from mainspring.api.models.triggers import (
    NewTrigger,
    Rehearsal,
    RehearsedModel,
    TriggerFields,
    TriggerModel,
)
from mainspring.api.responses import large_page, nothing, place, read_place, reply, tagged
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
from mainspring.domain.errors import InvalidTrigger
from mainspring.domain.triggers import TriggerState
from mainspring.services import definitions, events, triggers

router = Router(prefix="/triggers", tags=["triggers"])
Reader = Annotated[RequestContext, Depends(reading("triggers"))]
Writer = Annotated[RequestContext, Depends(writing("triggers"))]


def _shown(state: TriggerState, status: int = 200) -> Response:
    return tagged(TriggerModel.of(state), _facts(state), status)


def _facts(state: TriggerState) -> object:
    return [str(state.trigger), state.is_enabled]


@router.get("", response_model=Page[TriggerModel])
async def list_triggers(
    context: Reader,
    event: Annotated[
        NameFilter, Query(description="Only triggers that match one of these events.")
    ] = None,
    definition: Annotated[
        NameFilter, Query(description="Only triggers of these definitions.")
    ] = None,
    is_enabled: Annotated[
        bool | None, Query(description="Only enabled triggers, or disabled ones.")
    ] = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List triggers by name; with an event, those that match it. A page has at most 4 MiB: it may
    be shorter than `limit`, and `next_cursor` continues."""

    async def load(last_seen: Sequence[str | None], count: int) -> Sequence[TriggerState]:
        name, after_tenant = last_seen
        return await triggers.list_triggers(
            context.session,
            context.listed_tenant,
            after=name or after,
            after_tenant=after_tenant,
            enabled=is_enabled,
            event=event,
            definition=definition,
            limit=count,
        )

    return await large_page(
        load,
        TriggerModel.of,
        lambda state: place(state.name, state.tenant_id),
        after=read_place(cursor),
        limit=limit,
    )


@router.post("", response_model=TriggerModel, status_code=201)
async def create_trigger(
    context: Writer,
    trigger: Annotated[NewTrigger, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a trigger, which enqueues a definition for each matching event."""
    facts = trigger.given()
    name, enabled = facts.pop("name"), facts.pop("is_enabled", True)
    rule = triggers.make(name, facts)

    async def make(session: TransactionSession) -> Response:
        await definitions.ensure_known(session, [rule.definition])
        made = await triggers.create(session, context.tenant_id, rule, is_enabled=enabled)
        return _shown(made, 201)

    return await once(context, idempotency_key, make)


@router.get("/{name}", response_model=TriggerModel)
async def get_trigger(context: Reader, name: Named) -> Response:
    """Get a trigger by name."""
    return _shown(await triggers.get(context.session, context.tenant_id, name))


@router.patch("/{name}", response_model=TriggerModel)
async def update_trigger(
    context: Writer,
    name: Named,
    changes: Annotated[TriggerFields, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Update some fields, from the next event on, if the trigger still matches If-Match."""
    facts = changes.given()
    for field, value in facts.items():
        if value is None and field not in triggers.NULLABLE:
            raise InvalidTrigger(field, "must have a value")
    async with context.editing("trigger", name) as session:
        context.ensure_unchanged(
            _facts(await triggers.get(session, context.tenant_id, name)), if_match
        )
        rule = await triggers.changed(session, context.tenant_id, name, changes=facts)
        if "definition" in facts:
            await definitions.ensure_known(session, [rule.definition])
        return _shown(await triggers.update(session, context.tenant_id, rule, columns=facts))


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete_trigger(
    context: Writer,
    name: Named,
    if_match: IfMatch = None,
) -> Response:
    """Delete a trigger; its jobs are kept."""
    async with context.editing("trigger", name) as session:
        context.ensure_unchanged(
            _facts(await triggers.get(session, context.tenant_id, name)), if_match
        )
        await triggers.delete(session, context.tenant_id, name)
    return nothing()


@router.post("/{name}/enable", response_model=TriggerModel)
async def enable_trigger(context: Writer, name: Named) -> Response:
    """Enable a trigger."""
    return _shown(
        await triggers.set_enabled(context.session, context.tenant_id, name, is_enabled=True)
    )


@router.post("/{name}/disable", response_model=TriggerModel)
async def disable_trigger(context: Writer, name: Named) -> Response:
    """Disable a trigger; it misses events until it is enabled."""
    return _shown(
        await triggers.set_enabled(context.session, context.tenant_id, name, is_enabled=False)
    )


@router.post("/{name}/test", response_model=RehearsedModel)
async def rehearse_trigger(
    context: Reader, name: Named, asked: Annotated[Rehearsal | None, Body()] = None
) -> Response:
    """Render the payload that an event would produce; nothing is enqueued."""
    given = asked or Rehearsal()
    events.encode_context(given.context, context.settings.max_payload_bytes)
    state = await triggers.get(context.session, context.tenant_id, name)
    text = await triggers.rehearse(context.session, state, given.context, event=given.event)
    return reply(RehearsedModel.model_construct(payload=orjson.loads(text)))
