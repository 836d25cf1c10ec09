"""/status."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.processes import StatusModel
from mainspring.api.responses import reply
from mainspring.api.routing import Depends, Response, Router
from mainspring.services import processes as process_services

router = Router()
Reader = Annotated[RequestContext, Depends(reading("status"))]


@router.get("/status", tags=["processes"], response_model=StatusModel)
async def get_status(context: Reader) -> Response:
    """Get what all processes do together: who leads the scheduling, what has waited for longest,
    and the database."""
    return reply(StatusModel.of(await process_services.read_status(context.session)))
