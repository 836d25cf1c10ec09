"""/definitions: what may be run."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.errors import Refused
from mainspring.api.models.base import Filter, Page
from mainspring.api.models.definitions import DefinitionFields, DefinitionModel, NewDefinition
from mainspring.api.responses import large_page, read_cursor, tagged
from mainspring.api.routes.parameters import (
    After,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Named,
    once,
)
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.definitions import DefinitionState
from mainspring.domain.errors import UnknownDefinition
from mainspring.domain.types import Kind
from mainspring.services import definitions

router = Router(prefix="/definitions", tags=["definitions"])
Reader = Annotated[RequestContext, Depends(reading("definitions"))]
Writer = Annotated[RequestContext, Depends(writing("definitions"))]


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
    context: Reader,
    kind: Annotated[
        Filter[Kind] | None, Query(description="Only definitions of these kinds.")
    ] = None,
    is_active: Annotated[
        bool | None, Query(description="Only those that accept new jobs, or that do not.")
    ] = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List definitions by key. A page has at most 4 MiB: it may be shorter than `limit`, and
    `next_cursor` continues."""

    async def load(last_seen: str | None, count: int) -> Sequence[DefinitionState]:
        return await definitions.list_definitions(
            context.session, after=last_seen, kind=kind, active=is_active, limit=count
        )

    last_seen = read_cursor(cursor, str) or after
    return await large_page(
        load, DefinitionModel.of, lambda state: state.key, after=last_seen, limit=limit
    )


@router.post("", response_model=DefinitionModel, status_code=201)
async def create_definition(
    context: Writer,
    definition: Annotated[NewDefinition, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a definition that is not declared in Python: a SQL function, a command, or a remote
    one, whose jobs a program in any language claims over /work."""
    made = definitions.make(definition.key, definition.kind, definition.read())
    pinned = definitions.pinned(made, context.settings.command_paths)

    async def make(session: TransactionSession) -> Response:
        database = context.server.database
        return _shown(await definitions.create(session, pinned, database=database), 201)

    return await once(context, idempotency_key, make)


@router.get("/{name}", response_model=DefinitionModel)
async def get_definition(context: Reader, name: Named) -> Response:
    """Get a definition by key."""
    async with _known():
        return _shown(await definitions.get(context.session, name))


@router.patch("/{name}", response_model=DefinitionModel)
async def update_definition(
    context: Writer,
    name: Named,
    changes: Annotated[DefinitionFields, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Update some fields, if the definition still matches If-Match. Jobs already enqueued run with
    the old values."""
    async with _known(), context.editing("definition", name) as session:
        context.ensure_unchanged(_facts(await definitions.get(session, name)), if_match)
        changed = await definitions.update(
            session,
            name,
            changes.read(),
            directories=context.settings.command_paths,
            database=context.server.database,
        )
        return _shown(changed)


@router.post("/{name}/activate", response_model=DefinitionModel)
async def activate_definition(context: Writer, name: Named) -> Response:
    """Accept new jobs again."""
    async with _known():
        return _shown(await definitions.set_active(context.session, name, is_active=True))


@router.post("/{name}/deactivate", response_model=DefinitionModel)
async def deactivate_definition(context: Writer, name: Named) -> Response:
    """Refuse new jobs; those already enqueued still run."""
    async with _known():
        return _shown(await definitions.set_active(context.session, name, is_active=False))
