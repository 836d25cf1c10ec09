"""/sessions: who is logged in."""

from typing import Annotated

from mainspring.api.auth import RequestContext, known
from mainspring.api.models.base import Page
from mainspring.api.models.sessions import SessionModel
from mainspring.api.responses import nothing, page, read_cursor
from mainspring.api.routes.parameters import Cursor, Limit, NameFilter, Number
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.errors.access import SessionNotFound
from mainspring.services import sessions, tokens

router = Router(prefix="/sessions", tags=["sessions"])
Known = Annotated[RequestContext, Depends(known())]


@router.get("", response_model=Page[SessionModel])
async def list_sessions(
    context: Known,
    person: Annotated[NameFilter, Query(description="Only sessions of these people.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List sessions, newest first: your own, or those of the people you may manage."""
    found = await sessions.list_sessions(
        context.session,
        context.caller,
        context.own_tenant,
        person=person,
        before=read_cursor(cursor, int),
        limit=limit,
    )
    following = found[-1].session_id if len(found) == limit else None
    current = context.caller.token_id
    return page(
        found,
        lambda each: SessionModel.of(each, current=current),
        following=following,
        model=Page[SessionModel],
    )


@router.delete("/current", status_code=204, response_class=Response)
async def log_out(context: Known) -> Response:
    """Log out: end the session that this request is made with."""
    if not context.caller.is_session:
        raise SessionNotFound
    await tokens.log_out(context.requests, context.token)
    return nothing()


@router.delete("/{session_id:int}", status_code=204, response_class=Response)
async def end_session(context: Known, session_id: Number) -> Response:
    """End a session: your own, or one of the people you may manage."""
    async with context.session.begin() as session:
        await sessions.end(session, context.caller, session_id, tenant_id=context.own_tenant)
    return nothing()
