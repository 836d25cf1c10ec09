"""/limits: how many jobs run at once, and how often."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page
from mainspring.api.models.limits import LimitIn, LimitModel
from mainspring.api.responses import nothing, page, reply
from mainspring.api.routes.parameters import Named
from mainspring.api.routing import Body, Depends, Response, Router
from mainspring.domain import limits as limit_rules
from mainspring.services import limits

router = Router(prefix="/limits", tags=["limits"])
Reader = Annotated[RequestContext, Depends(reading("limits"))]
Writer = Annotated[RequestContext, Depends(writing("limits"))]


@router.get("", response_model=Page[LimitModel])
async def list_limits(context: Reader) -> Response:
    """List all limits by name, including those of single definitions."""
    return page(
        await limits.list_limits(context.session),
        LimitModel.of,
        following=None,
        model=Page[LimitModel],
    )


@router.get("/{name}", response_model=LimitModel)
async def get_limit(context: Reader, name: Named) -> Response:
    """Get a limit with the number of its running and waiting jobs."""
    return reply(LimitModel.of(await limits.get(context.session, name)))


@router.put("/{name}", response_model=LimitModel)
async def set_limit(context: Writer, name: Named, given: Annotated[LimitIn, Body()]) -> Response:
    """Set what a limit allows; omitted fields are unlimited."""
    rate = None if given.rate is None else limit_rules.Rate.parse(given.rate)
    limit = limit_rules.Limit(
        name,
        concurrency=given.concurrency,
        key_concurrency=given.key_concurrency,
        rate=rate,
        burst=given.burst,
    )
    return reply(LimitModel.of(await limits.set_limit(context.session, limit, actor=None)))


@router.delete("/{name}", status_code=204, response_class=Response)
async def remove_limit(context: Writer, name: Named) -> Response:
    """Remove a limit and release the jobs that wait for it."""
    await limits.remove(context.session, name, actor=None)
    return nothing()
