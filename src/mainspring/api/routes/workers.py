"""/workers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.workers import WorkerModel, Workers
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import reply
from mainspring.services import workers as worker_services

router = APIRouter(route_class=JsonRoute)
Reader = Annotated[RequestContext, Depends(reading("workers"))]


@router.get("/workers", tags=["workers"], response_model=Workers)
async def list_workers(context: Reader) -> Response:
    """All workers, the newest first."""
    found = await worker_services.list_workers(context.database)
    return reply(Workers.model_construct(items=[WorkerModel.of(row) for row in found]))
