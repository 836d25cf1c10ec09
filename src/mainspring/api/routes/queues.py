"""/queues."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.base import Page
from mainspring.api.models.queues import QueueModel
from mainspring.api.responses import page, place, read_place
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Depends, Response, Router
from mainspring.services import jobs as job_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("jobs"))]


@router.get("/queues", tags=["queues"], response_model=Page[QueueModel])
async def list_queues(context: Reader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """List the queues that have live jobs, by name."""
    name, after_tenant = read_place(cursor)
    found = await job_services.queue_counts(
        context.session,
        context.listed_tenant,
        after=name,
        after_tenant=after_tenant,
        limit=limit,
    )
    last = found[-1] if len(found) == limit else None
    following = None if last is None else place(last["queue"], last["tenant_id"])
    return page(found, QueueModel.of, following=following, model=Page[QueueModel])
