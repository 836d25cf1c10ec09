"""/queues."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.queues import QueueModel, Queues
from mainspring.api.responses import reply
from mainspring.api.routing import Depends, Response, Router
from mainspring.services import jobs as job_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("jobs"))]


@router.get("/queues", tags=["jobs"], response_model=Queues)
async def list_queues(context: Reader) -> Response:
    """List the queues that have live jobs."""
    found = await job_services.queue_counts(context.session, context.listed_tenant)
    return reply(Queues.model_construct(items=[QueueModel.of(row) for row in found]))
