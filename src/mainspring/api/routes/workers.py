"""/workers."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.workers import WorkerModel, Workers
from mainspring.api.responses import reply
from mainspring.api.routing import Depends, Response, Router
from mainspring.services import workers as worker_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("workers"))]


@router.get("/workers", tags=["workers"], response_model=Workers)
async def list_workers(context: Reader) -> Response:
    """List the workers that run jobs of the tenant, newest first; for an operator, all workers."""
    found = await worker_services.list_workers(context.session)
    return reply(Workers.model_construct(items=[WorkerModel.of(row) for row in found]))
