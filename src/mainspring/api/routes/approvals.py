"""/approvals: jobs that wait for a decision."""

from collections.abc import Sequence
from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.approvals import ApprovalModel
from mainspring.api.models.base import IdIn, Page
from mainspring.api.responses import large_page, read_cursor, reply
from mainspring.api.routes.parameters import Cursor, Limit, NameFilter, Number
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.approvals import Approval
from mainspring.domain.types import JobId
from mainspring.services import approvals

router = Router(prefix="/approvals", tags=["approvals"])
Reader = Annotated[RequestContext, Depends(reading("approvals"))]


@router.get("", response_model=Page[ApprovalModel])
async def list_approvals(
    context: Reader,
    definition: Annotated[NameFilter, Query(description="Only jobs of these definitions.")] = None,
    after: Annotated[IdIn | None, Query(description="Only jobs newer than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List jobs that await approval, longest waiting first. A page has at most 4 MiB: it may be
    shorter than `limit`, and `next_cursor` continues."""

    async def load(newer: JobId | None, count: int) -> Sequence[Approval]:
        return await approvals.list_open(
            context.session,
            context.listed_tenant,
            definition=definition,
            after=newer,
            limit=count,
        )

    newer = read_cursor(cursor, int) or after
    return await large_page(
        load, ApprovalModel.of, lambda approval: approval.job_id, after=newer, limit=limit
    )


@router.get("/{job_id:int}", response_model=ApprovalModel)
async def get_approval(context: Reader, job_id: Number) -> Response:
    """Get a job's approval and the decisions so far."""
    found = await approvals.get(context.session, context.tenant_id, JobId(job_id))
    return reply(ApprovalModel.of(found))
