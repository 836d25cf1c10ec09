"""/work: jobs for workers in any language, under a lease."""

from datetime import timedelta
from typing import Annotated

from mainspring.api.auth import RequestContext, writing
from mainspring.api.models.base import IdIn
from mainspring.api.models.jobs import StateModel
from mainspring.api.models.work import (
    CancelReport,
    CheckpointReport,
    Claim,
    ClaimedModel,
    FailureReport,
    Heartbeat,
    KeptModel,
    NewWorker,
    ProgressReport,
    RegisteredModel,
    StopModel,
    SuccessReport,
    WorkModel,
)
from mainspring.api.responses import nothing, reply
from mainspring.api.routing import Body, Depends, Path, Response, Router
from mainspring.domain.jobs.model import Progress
from mainspring.domain.types import Fence, JobId, JobState, WorkerId
from mainspring.services.work import Work
from mainspring.store.work import Lease

router = Router(prefix="/work", tags=["work"])

Worker = Annotated[RequestContext, Depends(writing("work"))]
WorkerNumber = Annotated[IdIn, Path(description="The worker's id.")]
JobNumber = Annotated[IdIn, Path(description="The job's id.")]


def _work(context: RequestContext) -> Work:
    server = context.server
    return Work(server.database, context.caller, server.claim_orders, context.token)


def _lease(worker_id: int, job_id: int, fence: int) -> Lease:
    return Lease(WorkerId(worker_id), JobId(job_id), Fence(fence))


@router.post("/workers", response_model=RegisteredModel, status_code=201)
async def register(context: Worker, worker: Annotated[NewWorker, Body()]) -> Response:
    """Register a worker, which starts its lease."""
    worker_id = await _work(context).register(
        worker.name,
        worker.queues,
        concurrency=worker.concurrency,
        lease=timedelta(seconds=worker.lease_seconds),
    )
    made = RegisteredModel.model_construct(worker_id=worker_id, lease_seconds=worker.lease_seconds)
    return reply(made, 201)


@router.delete("/workers/{worker_id:int}", status_code=204, response_class=Response)
async def leave(context: Worker, worker_id: WorkerNumber) -> Response:
    """Deregister a worker; the jobs it holds go back to the queue at once."""
    await _work(context).leave(WorkerId(worker_id))
    return nothing()


@router.post("/workers/{worker_id:int}/heartbeat", response_model=KeptModel)
async def heartbeat(
    context: Worker, worker_id: WorkerNumber, given: Annotated[Heartbeat | None, Body()] = None
) -> Response:
    """Renew the lease; the response lists the jobs to stop."""
    lease = timedelta(seconds=(given or Heartbeat()).lease_seconds)
    stops = await _work(context).renew(WorkerId(worker_id), lease)
    return reply(KeptModel.model_construct(stop=[StopModel.of(stop) for stop in stops]))


@router.post("/workers/{worker_id:int}/claim", response_model=ClaimedModel)
async def claim(
    context: Worker, worker_id: WorkerNumber, asked: Annotated[Claim, Body()]
) -> Response:
    """Claim jobs; with `wait`, respond as soon as there is one or the time is up."""
    items = await _work(context).claim(
        WorkerId(worker_id),
        asked.definitions,
        limit=asked.limit,
        wait=asked.wait,
        held=asked.held,
    )
    return reply(ClaimedModel.model_construct(jobs=[WorkModel.of(item) for item in items]))


@router.post(
    "/workers/{worker_id:int}/jobs/{job_id:int}/progress",
    status_code=204,
    response_class=Response,
)
async def progress(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[ProgressReport, Body()],
) -> Response:
    """Report the progress of a job."""
    reported = Progress(report.current, report.total, report.message, report.data)
    await _work(context).progress(_lease(worker_id, job_id, report.fence), reported)
    return nothing()


@router.post(
    "/workers/{worker_id:int}/jobs/{job_id:int}/checkpoint",
    status_code=204,
    response_class=Response,
)
async def checkpoint(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[CheckpointReport, Body()],
) -> Response:
    """Store a checkpoint for a later attempt to resume from."""
    await _work(context).checkpoint(_lease(worker_id, job_id, report.fence), report.checkpoint)
    return nothing()


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/complete", response_model=StateModel)
async def complete(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[SuccessReport, Body()],
) -> Response:
    """Report that a job succeeded."""
    await _work(context).complete(_lease(worker_id, job_id, report.fence), report.result)
    return reply(StateModel.model_construct(id=job_id, state=JobState.SUCCEEDED))


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/fail", response_model=StateModel)
async def fail(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[FailureReport, Body()],
) -> Response:
    """Report that a job failed; it is retried or has finally failed."""
    state = await _work(context).fail(
        _lease(worker_id, job_id, report.fence),
        report.error,
        may_retry=report.retry,
        delay=report.delay,
    )
    return reply(StateModel.model_construct(id=job_id, state=state))


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/canceled", response_model=StateModel)
async def canceled(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[CancelReport, Body()],
) -> Response:
    """Report that a job was stopped, as a heartbeat requested."""
    await _work(context).cancel(_lease(worker_id, job_id, report.fence), report.reason)
    return reply(StateModel.model_construct(id=job_id, state=JobState.CANCELED))
