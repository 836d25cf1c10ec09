"""/processes."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.base import Filter, Page
from mainspring.api.models.processes import ProcessModel
from mainspring.api.responses import page, read_cursor
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.processes import ProcessKind
from mainspring.services import processes as process_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("processes"))]
Kinds = Annotated[Filter[ProcessKind] | None, Query(description="Only processes with these roles.")]


@router.get("/processes", tags=["processes"], response_model=Page[ProcessModel])
async def list_processes(
    context: Reader, kind: Kinds = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List workers, schedulers and servers, newest first, with their last sign of life; a process
    has an entry for each of its roles. Those that stopped are gone, those that are silent stay for
    an hour."""
    found = await process_services.list_processes(
        context.session, kind=kind, before=read_cursor(cursor, int), limit=limit
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, ProcessModel.of, following=following, model=Page[ProcessModel])
