"""/limits: how many jobs run at once, and how often."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page
from mainspring.api.models.limits import LimitIn, LimitModel
from mainspring.api.responses import nothing, page, read_cursor, tagged
from mainspring.api.routes.parameters import After, Cursor, IfMatch, Limit, Named
from mainspring.api.routing import Body, Depends, Response, Router
from mainspring.domain import limits as limit_rules
from mainspring.domain.limits import LimitState
from mainspring.services import limits

router = Router(prefix="/limits", tags=["limits"])
Reader = Annotated[RequestContext, Depends(reading("limits"))]
Writer = Annotated[RequestContext, Depends(writing("limits"))]


def _shown(state: LimitState) -> Response:
    return tagged(LimitModel.of(state), _facts(state))


def _facts(state: LimitState) -> object:
    return str(state.limit)


@router.get("", response_model=Page[LimitModel])
async def list_limits(
    context: Reader, after: After = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List limits by name, including those of single definitions."""
    found = await limits.list_limits(
        context.session, after=read_cursor(cursor, str) or after, limit=limit
    )
    following = found[-1].name if len(found) == limit else None
    return page(found, LimitModel.of, following=following, model=Page[LimitModel])


@router.get("/{name}", response_model=LimitModel)
async def get_limit(context: Reader, name: Named) -> Response:
    """Get a limit with the number of its running and waiting jobs."""
    return _shown(await limits.get(context.session, name))


@router.put("/{name}", response_model=LimitModel)
async def set_limit(
    context: Writer, name: Named, given: Annotated[LimitIn, Body()], if_match: IfMatch = None
) -> Response:
    """Set what a limit allows, if it still matches If-Match; omitted fields are unlimited."""
    rate = None if given.rate is None else limit_rules.Rate.parse(given.rate)
    limit = limit_rules.Limit(
        name,
        concurrency=given.concurrency,
        key_concurrency=given.key_concurrency,
        rate=rate,
        burst=given.burst,
    )
    async with context.editing("limit", name) as session:
        if if_match is not None:
            context.ensure_unchanged(_facts(await limits.get(session, name)), if_match)
        return _shown(await limits.set_limit(session, limit, actor=None))


@router.delete("/{name}", status_code=204, response_class=Response)
async def remove_limit(context: Writer, name: Named, if_match: IfMatch = None) -> Response:
    """Remove a limit and release the jobs that wait for it."""
    async with context.editing("limit", name) as session:
        if if_match is not None:
            context.ensure_unchanged(_facts(await limits.get(session, name)), if_match)
        await limits.remove(session, name, actor=None)
    return nothing()
