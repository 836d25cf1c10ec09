"""/jobs/bulk: cancel, retry or delete jobs by filter."""

from typing import Annotated

from mainspring.api.auth import RequestContext, writing
from mainspring.api.models.operations import Bulk, BulkModel
from mainspring.api.responses import JSON
from mainspring.api.routes.jobs import own_jobs
from mainspring.api.routes.parameters import IdempotencyKey, once
from mainspring.api.routing import Body, Depends, Response, Router
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.operations import Operation, ensure_sensible
from mainspring.domain.types import BulkAction
from mainspring.services import operations

router = Router(prefix="/jobs", tags=["jobs"])

Writer = Annotated[RequestContext, Depends(writing("jobs"))]


@router.post(
    "/bulk",
    response_model=BulkModel,
    status_code=202,
    responses={200: {"model": BulkModel, "description": "The result of a dry run."}},
)
async def change_jobs(
    context: Writer, asked: Annotated[Bulk, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Cancel, retry or delete all matching jobs, in a background job, or count them."""
    operation = _operation(context, asked)
    if asked.dry_run:
        counted = await operations.count(context.searching, operation)
        return _reply(BulkModel(count=counted.count, is_exact=counted.is_exact), 200)
    await context.server.install()

    async def start(session: TransactionSession) -> Response:
        job_id, counted = await operations.start(session, operation)
        made = BulkModel(job_id=job_id, count=counted.count, is_exact=counted.is_exact)
        return _reply(made, 202)

    return await once(context, idempotency_key, start)


def _operation(context: RequestContext, asked: Bulk) -> Operation:
    meant = asked.filter.read() if asked.filter else JobFilter()
    ensure_sensible(asked.action, meant, is_all=asked.all)
    reason: str | None = asked.reason or None
    if reason is None and asked.action is BulkAction.CANCEL:
        reason = f"canceled by {context.caller.actor}"
    return Operation(asked.action, own_jobs(context, meant), context.tenant_id, reason=reason)


def _reply(model: BulkModel, status: int) -> Response:
    content = model.model_dump_json(exclude_none=True).encode()
    return Response(content, status, media_type=JSON)
