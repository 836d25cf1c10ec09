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
    NewRegistrations,
    NewWorker,
    ProgressReport,
    RegisteredModel,
    RegistrationModel,
    RegistrationsModel,
    StopModel,
    SuccessReport,
    WorkModel,
)
from mainspring.api.responses import nothing, reply
from mainspring.api.routing import Body, Depends, Path, Response, Router
from mainspring.domain.jobs.model import Progress
from mainspring.domain.types import Fence, JobId, JobState, WorkerId
from mainspring.services.registrations import register as register_all
from mainspring.services.work import Work
from mainspring.services.work_leases import WorkLeases
from mainspring.services.work_reports import Failure, WorkReports
from mainspring.store.work import Lease

router = Router(prefix="/work", tags=["work"])

Worker = Annotated[RequestContext, Depends(writing("work"))]
WorkerNumber = Annotated[IdIn, Path(description="The worker's id.")]
JobNumber = Annotated[IdIn, Path(description="The job's id.")]


def _work(context: RequestContext) -> Work:
    return Work(_leases(context), context.server.claim_orders, context.token)


def _reports(context: RequestContext) -> WorkReports:
    return WorkReports(_leases(context))


def _leases(context: RequestContext) -> WorkLeases:
    return WorkLeases(context.requests, context.caller)


def _ended(job_id: int, state: JobState) -> Response:
    return reply(StateModel.model_construct(id=job_id, state=state))


def _lease(worker_id: int, job_id: int, fence: int) -> Lease:
    return Lease(WorkerId(worker_id), JobId(job_id), Fence(fence))


@router.post("/register", response_model=RegistrationsModel)
async def register_definitions(
    context: Worker, asked: Annotated[NewRegistrations, Body()]
) -> Response:
    """Register remote definitions, all or none; writes only what has changed. Only a token for all
    tenants can create or change them."""
    given = [each.registration() for each in asked.definitions]
    stored = await register_all(_leases(context), context.token, given)
    shown = [RegistrationModel.of(each) for each in stored]
    return reply(RegistrationsModel.model_construct(definitions=shown))


@router.post("/workers", response_model=RegisteredModel, status_code=201)
async def register_worker(context: Worker, worker: Annotated[NewWorker, Body()]) -> Response:
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
async def deregister_worker(context: Worker, worker_id: WorkerNumber) -> Response:
    """Deregister a worker; the jobs it holds go back to the queue at once."""
    await _work(context).leave(WorkerId(worker_id))
    return nothing()


@router.post("/workers/{worker_id:int}/heartbeat", response_model=KeptModel)
async def renew_lease(
    context: Worker, worker_id: WorkerNumber, given: Annotated[Heartbeat | None, Body()] = None
) -> Response:
    """Renew the lease; the response lists the jobs to stop."""
    lease = timedelta(seconds=(given or Heartbeat()).lease_seconds)
    stops = await _work(context).renew(WorkerId(worker_id), lease)
    return reply(KeptModel.model_construct(stop=[StopModel.of(stop) for stop in stops]))


@router.post("/workers/{worker_id:int}/claim", response_model=ClaimedModel)
async def claim_jobs(
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
async def report_progress(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[ProgressReport, Body()],
) -> Response:
    """Report the progress of a job."""
    reported = Progress(report.current, report.total, report.message, report.data)
    await _reports(context).progress(_lease(worker_id, job_id, report.fence), reported)
    return nothing()


@router.post(
    "/workers/{worker_id:int}/jobs/{job_id:int}/checkpoint",
    status_code=204,
    response_class=Response,
)
async def report_checkpoint(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[CheckpointReport, Body()],
) -> Response:
    """Store a checkpoint for a later attempt to resume from."""
    await _reports(context).checkpoint(_lease(worker_id, job_id, report.fence), report.checkpoint)
    return nothing()


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/complete", response_model=StateModel)
async def report_success(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[SuccessReport, Body()],
) -> Response:
    """Report that a job succeeded. It can be repeated if the response was lost."""
    lease = _lease(worker_id, job_id, report.fence)
    return _ended(job_id, await _reports(context).complete(lease, report.result, report.output))


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/fail", response_model=StateModel)
async def report_failure(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[FailureReport, Body()],
) -> Response:
    """Report that a job failed; it is retried or has finally failed. It can be repeated if the
    response was lost."""
    lease = _lease(worker_id, job_id, report.fence)
    failure = Failure(report.error, may_retry=report.retry, delay=report.delay)
    return _ended(job_id, await _reports(context).fail(lease, failure, report.output))


@router.post("/workers/{worker_id:int}/jobs/{job_id:int}/canceled", response_model=StateModel)
async def report_cancel(
    context: Worker,
    worker_id: WorkerNumber,
    job_id: JobNumber,
    report: Annotated[CancelReport, Body()],
) -> Response:
    """Report that a job was stopped, as a heartbeat requested. It can be repeated if the response
    was lost."""
    lease = _lease(worker_id, job_id, report.fence)
    return _ended(job_id, await _reports(context).cancel(lease, report.reason, report.output))
