"""/definitions and /limits: what may be run, and how much of it at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Response

from mainspring.api.auth import Desk, reading, writing
from mainspring.api.errors import Refused
from mainspring.api.models.base import Page
from mainspring.api.models.definitions import (
    DefinitionFields,
    DefinitionModel,
    LimitIn,
    LimitModel,
    NewDefinition,
)
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import nothing, page, read_cursor, reply, tagged
from mainspring.api.routes.parameters import After, Cursor, IdempotencyKey, Limit, Named, once
from mainspring.db.database import Database
from mainspring.domain import limits as limit_rules
from mainspring.domain.definitions import DefinitionState
from mainspring.domain.errors import UnknownDefinition
from mainspring.domain.types import Kind
from mainspring.services import definitions, limits

router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)
limit_router = APIRouter(prefix="/limits", tags=["limits"], route_class=JsonRoute)

Reader = Annotated[Desk, Depends(reading("definitions"))]
Writer = Annotated[Desk, Depends(writing("definitions"))]
LimitReader = Annotated[Desk, Depends(reading("limits"))]
LimitWriter = Annotated[Desk, Depends(writing("limits"))]


def _shown(state: DefinitionState, status: int = 200) -> Response:
    return tagged(DefinitionModel.of(state), _facts(state), status)


def _facts(state: DefinitionState) -> object:
    return [state.version, state.is_active, str(state.updated_at)]


@asynccontextmanager
async def _known() -> AsyncIterator[None]:
    """Here the definition is what is asked for, not a part of the request."""
    try:
        yield
    except UnknownDefinition as error:
        raise Refused(HTTPStatus.NOT_FOUND, error.code, str(error)) from None


@router.get("", response_model=Page[DefinitionModel])
async def list_definitions(
    desk: Reader,
    kind: Kind | None = None,
    active: bool | None = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Definitions by key."""
    found = await definitions.list_definitions(
        desk.database,
        after=read_cursor(cursor, str) or after,
        kind=kind,
        active=active,
        limit=limit,
    )
    following = found[-1].key if len(found) == limit else None
    return page(found, DefinitionModel.of, following=following, model=Page[DefinitionModel])


@router.post("", response_model=DefinitionModel, status_code=201)
async def create(
    desk: Writer,
    definition: Annotated[NewDefinition, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Add a definition that needs no code: an SQL function or a command."""
    made = definitions.make(definition.key, definition.kind, definition.read())
    pinned = definitions.pinned(made, desk.settings.command_paths)

    async def make(database: Database) -> Response:
        return _shown(await definitions.create(database, pinned), 201)

    return await once(desk, idempotency_key, make)


@router.get("/{name}", response_model=DefinitionModel)
async def get_definition(desk: Reader, name: Named) -> Response:
    """One definition by its key."""
    async with _known():
        return _shown(await definitions.get(desk.database, name))


@router.patch("/{name}", response_model=DefinitionModel)
async def update(
    desk: Writer, name: Named, changes: Annotated[DefinitionFields, Body()]
) -> Response:
    """Change some fields, if the definition is as If-Match says. Jobs that are enqueued already
    run as they were meant to."""
    async with _known(), desk.editing("definition", name) as held:
        desk.ensure_unchanged(_facts(await definitions.get(held, name)))
        directories = desk.settings.command_paths
        return _shown(await definitions.update(held, name, changes.read(), directories=directories))


@router.post("/{name}/activate", response_model=DefinitionModel)
async def activate(desk: Writer, name: Named) -> Response:
    """Let jobs be enqueued again."""
    async with _known():
        return _shown(await definitions.set_active(desk.database, name, is_active=True))


@router.post("/{name}/deactivate", response_model=DefinitionModel)
async def deactivate(desk: Writer, name: Named) -> Response:
    """Refuse new jobs; those that are enqueued already still run."""
    async with _known():
        return _shown(await definitions.set_active(desk.database, name, is_active=False))


@limit_router.get("", response_model=Page[LimitModel])
async def list_limits(desk: LimitReader) -> Response:
    """All limits by name, those that a definition has of its own included."""
    return page(
        await limits.list_limits(desk.database),
        LimitModel.of,
        following=None,
        model=Page[LimitModel],
    )


@limit_router.get("/{name}", response_model=LimitModel)
async def get_limit(desk: LimitReader, name: Named) -> Response:
    """One limit, and how many of its jobs run and wait."""
    return reply(LimitModel.of(await limits.get(desk.database, name)))


@limit_router.put("/{name}", response_model=LimitModel)
async def set_limit(desk: LimitWriter, name: Named, given: Annotated[LimitIn, Body()]) -> Response:
    """Say what a limit allows from now on; what is left out is not limited."""
    rate = None if given.rate is None else limit_rules.Rate.parse(given.rate)
    limit = limit_rules.Limit(
        name,
        concurrency=given.concurrency,
        key_concurrency=given.key_concurrency,
        rate=rate,
        burst=given.burst,
    )
    return reply(LimitModel.of(await limits.set_limit(desk.database, limit, actor=None)))


@limit_router.delete("/{name}", status_code=204, response_class=Response)
async def remove_limit(desk: LimitWriter, name: Named) -> Response:
    """Limit no more; what waits may go."""
    await limits.remove(desk.database, name, actor=None)
    return nothing()
