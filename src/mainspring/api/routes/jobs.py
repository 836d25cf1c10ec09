"""/jobs: look at jobs, enqueue and steer them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC
from http import HTTPStatus
from typing import Annotated, Any, Literal

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.errors import Refused
from mainspring.api.models.base import Filter, IdIn, InstantIn, Page, Text
from mainspring.api.models.jobs import (
    AttemptModel,
    Decision,
    Edit,
    EnqueuedManyModel,
    EnqueuedModel,
    JobModel,
    JobSummaryModel,
    NewJob,
    NewJobs,
    Reason,
    Rejection,
    StateModel,
    SummaryModel,
)
from mainspring.api.responses import (
    PAGE_BYTES,
    nothing,
    page,
    read_cursor,
    read_place,
    reply,
    short_page,
)
from mainspring.api.routes.parameters import Cursor, IdempotencyKey, Limit, Number, once
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.plans import arun
from mainspring.db.sessions import ServiceSession
from mainspring.domain.access.roles import Role
from mainspring.domain.errors import JobNotFound
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.jobs.model import Attempt, JobSummary
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId, JobState
from mainspring.services import definitions, jobs

router = Router(prefix="/jobs", tags=["jobs"])

Reader = Annotated[RequestContext, Depends(reading("jobs"))]
Writer = Annotated[RequestContext, Depends(writing("jobs"))]
_LOADED_AT_ONCE = 8
Included = Literal["payload", "result"]
Decider = Annotated[RequestContext, Depends(writing("approvals"))]


SourceQuery = Annotated[Filter[Text] | None, Query(description="Only jobs that came from there.")]
JobKindQuery = Annotated[Filter[Text] | None, Query(description="Only jobs of these definitions.")]
QueueQuery = Annotated[Filter[Text] | None, Query(description="Only jobs in these queues.")]
ScheduleQuery = Annotated[Filter[Text] | None, Query(description="Only jobs of these schedules.")]
SlotQuery = Annotated[InstantIn | None, Query(description="Only jobs of this slot.")]
TriggerQuery = Annotated[Filter[Text] | None, Query(description="Only jobs of these triggers.")]
EventQuery = Annotated[Filter[IdIn] | None, Query(description="Only jobs of these events.")]
FlowQuery = Annotated[Filter[IdIn] | None, Query(description="Only jobs of these flows.")]
ParentQuery = Annotated[
    Filter[IdIn] | None,
    Query(description="Only jobs that waited for one of these, or that it enqueued."),
]
WorkerQuery = Annotated[
    Filter[IdIn] | None, Query(description="Only jobs that one of these workers is running.")
]
VersionQuery = Annotated[Filter[IdIn] | None, Query(description="Only jobs of these versions.")]
KeyQuery = Annotated[Filter[Text] | None, Query(description="Only jobs with these error keys.")]


class JobQuery:
    """The filters of a job list."""

    def __init__(
        self,
        state: Annotated[
            Filter[JobState] | None, Query(description="Only jobs in one of these states.")
        ] = None,
        source: SourceQuery = None,
        definition: JobKindQuery = None,
        queue: QueueQuery = None,
        tag: Annotated[
            Filter[Text] | None, Query(description="Only jobs that have one of these tags.")
        ] = None,
        created_after: Annotated[
            InstantIn | None, Query(description="Only jobs enqueued at this time or later.")
        ] = None,
        created_before: Annotated[
            InstantIn | None, Query(description="Only jobs enqueued before this time.")
        ] = None,
        error: Annotated[
            Filter[Text] | None, Query(description="Only jobs whose last error contains this text.")
        ] = None,
        created_by: Annotated[
            Filter[Text] | None, Query(description="Only jobs that one of these enqueued.")
        ] = None,
        schedule: ScheduleQuery = None,
        slot_at: SlotQuery = None,
        trigger: TriggerQuery = None,
        event_id: EventQuery = None,
        flow_id: FlowQuery = None,
        parent_id: ParentQuery = None,
        worker_id: WorkerQuery = None,
        definition_version: VersionQuery = None,
        error_key: KeyQuery = None,
    ) -> None:
        self.asked = JobFilter.of(
            state=state,
            source=source,
            definition=definition,
            queue=queue,
            tag=tag,
            created_after=created_after,
            created_before=created_before,
            error=error,
            created_by=created_by,
            schedule=schedule,
            slot_at=slot_at,
            trigger=trigger,
            event_id=event_id,
            flow_id=flow_id,
            parent_id=parent_id,
            worker_id=worker_id,
            definition_version=definition_version,
            error_key=error_key,
        )

    def of(self, context: RequestContext) -> JobFilter:
        """A member's own, whatever it asks for."""
        return own_jobs(context, self.asked)


def own_jobs(context: RequestContext, asked: JobFilter) -> JobFilter:
    """The filter, and for a member its own jobs alone."""
    if context.creator is None:
        return asked
    if asked.created_by not in ((), (context.creator,)):
        raise Forbidden(
            "members see only their own jobs; an admin sees all of them: `mainspring admin jobs "
            "list`"
        )
    return replace(asked, created_by=(context.creator,))


def ensure_may_create_as(context: RequestContext, creator: str | None) -> None:
    """A member enqueues in its own name; an admin or an operator may name others."""
    if context.creator is not None and creator not in (None, context.creator):
        raise Forbidden(
            f"members enqueue in their own name only, not as {creator!r}; leave out created_by"
        )


Filters = Annotated[JobQuery, Depends()]


@router.get("", response_model=Page[JobSummaryModel])
async def list_jobs(
    context: Reader,
    filters: Filters,
    limit: Limit = 50,
    cursor: Cursor = None,
    include: Annotated[
        Filter[Included] | None, Query(description="What to add to each job.")
    ] = None,
) -> Response:
    """List jobs, newest first, in short. A page has at most 4 MiB: it may be shorter than `limit`,
    and `next_cursor` continues."""
    before = read_cursor(cursor, int)
    asked = filters.of(context)
    found, following = await jobs.list_jobs(
        context.searching if asked.is_search else context.session,
        context.listed_tenant,
        asked,
        before=None if before is None else JobId(before),
        limit=limit,
    )
    if include is not None:
        return await _including(context, found, following, names=frozenset(include))
    return summaries(found, following)


def summaries(found: Sequence[JobSummary], following: JobId | None) -> Response:
    """A page of jobs in short."""
    items = [JobSummaryModel.of(job) for job in found]
    return short_page(items, [job.id for job in found], following=following)


async def _including(
    context: RequestContext,
    found: Sequence[JobSummary],
    following: JobId | None,
    *,
    names: frozenset[str],
) -> Response:
    """The same with payloads or results. Reads a few at a time: a page of large ones is short."""
    items: list[JobSummaryModel] = []
    left = PAGE_BYTES
    for start in range(0, len(found), _LOADED_AT_ONCE):
        some = found[start : start + _LOADED_AT_ONCE]
        short = {job.id: job for job in some}
        for job in await jobs.load_jobs(context.session, context.listed_tenant, some):
            items.append(JobSummaryModel.including(short[job.id], job, names))
            left -= len(items[-1].model_dump_json())
        if left < 0:
            following = some[-1].id
            break
    return short_page(items, [item.id for item in items], following=following)


@router.post(
    "",
    response_model=EnqueuedModel,
    status_code=201,
    responses={200: {"model": EnqueuedModel, "description": "The job that has the key already."}},
)
async def enqueue_job(
    context: Writer, job: Annotated[NewJob, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Enqueue a job. If its key was used before, the response is 200 with the existing job."""
    ensure_may_create_as(context, job.created_by)
    facts = job.given()
    definition, payload = facts.pop("definition"), facts.pop("payload", {})
    options = EnqueueOptions(
        **_tuples(facts), tenant_id=context.tenant_id, idempotency_key=idempotency_key
    )
    from mainspring.services.enqueueing import Bearer  # noqa: PLC0415 - slow to import

    bearer = Bearer(context.requests, context.digest)
    plan = context.server.enqueuer.enqueue(definition, payload, options, bearer=bearer)
    job_id, is_new, whole = await arun(plan, context.session)
    shown = None if whole is None else JobModel.of(whole)
    made = EnqueuedModel.model_construct(id=job_id, is_new=is_new, job=shown)
    return reply(made, 201 if is_new else 200, {"Location": f"{context.request.url.path}/{job_id}"})


@router.post("/many", response_model=EnqueuedManyModel, status_code=201)
async def enqueue_jobs(
    context: Writer, jobs: Annotated[NewJobs, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Enqueue many jobs of one definition; those whose dedupe key is taken are skipped."""
    ensure_may_create_as(context, jobs.created_by)
    facts = jobs.given()
    definition, payloads = facts.pop("definition"), facts.pop("payloads")
    dedupe_keys = facts.pop("dedupe_keys", None)
    options = EnqueueOptions(**_tuples(facts), tenant_id=context.tenant_id)
    plan = context.server.enqueuer.enqueue_many(
        definition, payloads, options, dedupe_keys=dedupe_keys
    )

    async def make(session: ServiceSession) -> Response:
        return reply(EnqueuedManyModel.model_construct(ids=await arun(plan, session)), 201)

    if idempotency_key is None:
        return await make(context.session)
    # Before the transaction: nothing can be asked in one that has failed.
    await definitions.ensure_known(context.session, [definition])
    return await once(context, idempotency_key, make)


@router.get("/summary", response_model=SummaryModel)
async def get_job_summary(context: Reader) -> Response:
    """Get the number of jobs in each state."""
    summary = await context.server.summaries.get(
        context.session, context.listed_tenant, created_by=context.creator
    )
    return reply(SummaryModel.of(summary))


@router.get("/{job_id:int}", response_model=JobModel)
async def get_job(context: Reader, job_id: Number) -> Response:
    """Get a job, live or finished."""
    async with own(context):
        job = await jobs.get(context.session, JobId(job_id), context.tenant_id)
    return reply(JobModel.of(job))


@router.get("/{job_id:int}/attempts", response_model=Page[AttemptModel])
async def list_attempts(
    context: Reader, job_id: Number, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List the latest 1000 attempts of a job, first to last. Those before the latest 20 have no
    output and the first 200 characters of their error."""
    async with own(context):
        await jobs.get(context.session, JobId(job_id), context.tenant_id)
    after = tuple(read_place(cursor))
    found = [
        each
        for each in await jobs.attempts(context.session, JobId(job_id), context.tenant_id)
        if after[0] is None or _attempt_place(each) > after
    ]
    following = list(_attempt_place(found[limit - 1])) if len(found) > limit else None
    return page(found[:limit], AttemptModel.of, following=following, model=Page[AttemptModel])


def _attempt_place(attempt: Attempt) -> tuple[str, str]:
    """What attempts are ordered by, as text; attempts that were put back share a number."""
    return f"{attempt.number:010}", attempt.started_at.astimezone(UTC).isoformat()


@router.post("/{job_id:int}/cancel", response_model=StateModel)
async def cancel_job(
    context: Writer, job_id: Number, why: Annotated[Reason | None, Body()] = None
) -> Response:
    """Cancel a job that has not started; ask a running one to stop."""
    reason = (why and why.reason) or f"canceled by {context.caller.actor}"
    async with own(context):
        plan = jobs.cancel(JobId(job_id), reason, context.tenant_id, settings=context.settings)
        state = await arun(plan, context.session)
    return reply(StateModel.model_construct(id=job_id, state=state))


@router.post("/{job_id:int}/retry", response_model=StateModel)
async def retry_job(
    context: Writer, job_id: Number, edit: Annotated[Edit | None, Body()] = None
) -> Response:
    """Retry a failed, dead-lettered or canceled job, with a new payload if given."""
    number, payload = JobId(job_id), None if edit is None else edit.payload
    async with own(context):
        plan = jobs.retry(number, payload, context.tenant_id, settings=context.settings)
        await arun(plan, context.session)
        job = await jobs.get(context.session, number, context.tenant_id)
    return reply(StateModel.model_construct(id=job_id, state=job.state))


@router.delete("/{job_id:int}", status_code=204, response_class=Response)
async def delete_job(context: Writer, job_id: Number) -> Response:
    """Delete a job that is not running, with its attempts."""
    async with own(context):
        await arun(jobs.delete(JobId(job_id), context.tenant_id), context.session)
    return nothing()


@router.post("/{job_id:int}/approve", response_model=StateModel)
async def approve_job(
    context: Decider, job_id: Number, why: Annotated[Decision | None, Body()] = None
) -> Response:
    """Approve a job; it keeps waiting while more approvals are needed."""
    from mainspring.services import approvals  # noqa: PLC0415 - slow to import

    reason, actor = _vote(context, why or Decision())
    async with own(context):
        state = await approvals.approve(
            context.session, context.tenant_id, JobId(job_id), reason=reason, actor=actor
        )
    return reply(StateModel.model_construct(id=job_id, state=state))


@router.post("/{job_id:int}/reject", response_model=StateModel)
async def reject_job(
    context: Decider, job_id: Number, why: Annotated[Rejection, Body()]
) -> Response:
    """Reject a job that awaits approval; it is canceled."""
    from mainspring.services import approvals  # noqa: PLC0415 - slow to import

    reason, actor = _vote(context, why)
    async with own(context):
        await approvals.reject(
            context.session, context.tenant_id, JobId(job_id), reason=reason, actor=actor
        )
    return reply(StateModel.model_construct(id=job_id, state=JobState.CANCELED))


def _vote(context: RequestContext, why: Decision) -> tuple[str, str | None]:
    """The reason, and in whose name; who decides for someone else is named in the reason."""
    if why.by in (None, context.caller.actor):
        return why.reason, None
    if context.caller.role is not Role.OPERATOR:
        raise Forbidden("only an operator can decide on behalf of someone else")
    return f"{why.reason} (recorded by {context.caller.actor})".strip(), why.by


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in facts.items()
        if value is not None
    }


@asynccontextmanager
async def own(context: RequestContext) -> AsyncIterator[None]:
    """A member is told that someone else may see what it does not."""
    try:
        yield
    except JobNotFound as error:
        if context.caller.role is Role.MEMBER:
            raise Refused(
                HTTPStatus.NOT_FOUND,
                error.code,
                f"you have no job {error.job_id}; members can see and change only what they "
                "enqueued. An admin can change any job with `mainspring admin jobs`",
            ) from None
        raise
