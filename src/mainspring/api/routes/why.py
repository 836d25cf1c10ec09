"""/jobs/{job_id}/why: what a job waits for, and what would let it go on."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.why import WhyModel
from mainspring.api.responses import reply
from mainspring.api.routes.jobs import own
from mainspring.api.routes.parameters import Number
from mainspring.api.routing import Depends, Response, Router
from mainspring.domain.types import JobId
from mainspring.services import why

router = Router(prefix="/jobs", tags=["jobs"])
Reader = Annotated[RequestContext, Depends(reading("jobs"))]


@router.get("/{job_id:int}/why", response_model=WhyModel)
async def explain_job(context: Reader, job_id: Number) -> Response:
    """Explain why a job does not run, or what it does: the reasons in order of weight, each with
    what resolves it. An operator is also told what became of an id that no job has."""
    async with own(context):
        found = await why.why(context.session, JobId(job_id), context.tenant_id)
    return reply(WhyModel.of(found))
