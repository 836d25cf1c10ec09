"""/workers."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.base import Page
from mainspring.api.models.workers import WorkerModel
from mainspring.api.responses import page, read_cursor
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Depends, Response, Router
from mainspring.services import workers as worker_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("workers"))]


@router.get("/workers", tags=["workers"], response_model=Page[WorkerModel])
async def list_workers(context: Reader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """List the workers that run jobs of the tenant, newest first; for an operator, all workers."""
    found = await worker_services.list_workers(
        context.session, before=read_cursor(cursor, int), limit=limit
    )
    following = found[-1]["worker_id"] if len(found) == limit else None
    return page(found, WorkerModel.of, following=following, model=Page[WorkerModel])
