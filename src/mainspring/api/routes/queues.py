"""/queues: look at queues, pause and resume them."""

from typing import Annotated

from pydantic import AfterValidator

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page, Text
from mainspring.api.models.queues import PauseIn, QueueModel, QueuePauseModel
from mainspring.api.responses import nothing, page, place, read_place, reply
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Body, Depends, Path, Response, Router, read_name
from mainspring.services import queues

router = Router(prefix="/queues", tags=["queues"])
Reader = Annotated[RequestContext, Depends(reading("jobs"))]
Writer = Annotated[RequestContext, Depends(writing("queues"))]
QueueName = Annotated[Text, AfterValidator(read_name), Path(description="Name of the queue.")]


@router.get("", response_model=Page[QueueModel])
async def list_queues(context: Reader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """List the queues that have live jobs or are paused, by name. Paused queues without live jobs
    are listed for operators only."""
    name, after_tenant = read_place(cursor)
    found = await queues.list_queues(
        context.session,
        context.listed_tenant,
        after=name,
        after_tenant=after_tenant,
        limit=limit,
    )
    last = found[-1] if len(found) == limit else None
    following = None if last is None else place(last.name, last.tenant_id)
    return page(found, QueueModel.of, following=following, model=Page[QueueModel])


@router.post("/{name}/pause", response_model=QueuePauseModel)
async def pause_queue(
    context: Writer, name: QueueName, given: Annotated[PauseIn | None, Body()] = None
) -> Response:
    """Pause a queue for all tenants: nothing of it is claimed until it is resumed, or until the
    given time. A queue that is paused already gets the new end and reason."""
    pause = given or PauseIn()
    made = await queues.pause(
        context.session,
        name,
        reason=pause.reason,
        until=pause.until,
        duration=pause.duration,
        actor=None,
    )
    return reply(QueuePauseModel.of(made))


@router.post("/{name}/resume", status_code=204, response_class=Response)
async def resume_queue(context: Writer, name: QueueName) -> Response:
    """End the pause of a queue."""
    await queues.resume(context.session, name, actor=None)
    return nothing()
