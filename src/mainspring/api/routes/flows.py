"""/flows: jobs that wait for each other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.errors import Refused
from mainspring.api.models.base import IdIn, Page
from mainspring.api.models.flows import (
    CountModel,
    FlowJobModel,
    FlowModel,
    NewFlow,
    NewStep,
    StartedModel,
)
from mainspring.api.models.jobs import Reason
from mainspring.api.responses import page, read_cursor, reply
from mainspring.api.routes.jobs import ensure_may_create_as
from mainspring.api.routes.parameters import (
    Cursor,
    IdempotencyKey,
    Limit,
    NameFilter,
    Number,
    once,
)
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.plans import arun
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.access.roles import Role
from mainspring.domain.errors import FlowNotFound, InvalidFlow
from mainspring.domain.flows import Step
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId
from mainspring.services import flows

router = Router(prefix="/flows", tags=["flows"])
Reader = Annotated[RequestContext, Depends(reading("flows"))]
Writer = Annotated[RequestContext, Depends(writing("flows"))]
_OF_STEP = ("step", "definition", "payload", "after", "after_jobs", "on_parent_failure")


@asynccontextmanager
async def _own(context: RequestContext) -> AsyncIterator[None]:
    """A member is told that someone else may see what it does not."""
    try:
        yield
    except FlowNotFound as error:
        if context.caller.role is Role.MEMBER:
            raise Refused(
                HTTPStatus.NOT_FOUND,
                error.code,
                f"you have no flow {error.flow_id}; members can see and change only what they "
                "enqueued. An admin can change any flow with `mainspring admin flows`",
            ) from None
        raise


@router.get("", response_model=Page[FlowModel])
async def list_flows(
    context: Reader,
    name: Annotated[NameFilter, Query(description="Only flows with these names.")] = None,
    before: Annotated[IdIn | None, Query(description="Only flows older than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List flows, newest first."""
    older = read_cursor(cursor, int) or before
    found = await flows.list_flows(
        context.session, context.listed_tenant, name=name, before=older, limit=limit
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, FlowModel.of, following=following, model=Page[FlowModel])


@router.post("", response_model=StartedModel, status_code=201)
async def start_flow(
    context: Writer, flow: Annotated[NewFlow, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Enqueue jobs that wait for each other."""
    # In a thread: the steps of a large flow would hold up the requests of others.
    steps = await asyncio.to_thread(_steps, context, flow.steps)

    async def make(session: TransactionSession) -> Response:
        plan = context.server.enqueuer.enqueue_flow(flow.name, steps, context.tenant_id)
        flow_id, by_step = await arun(plan, session)
        job_ids = {step.name: job_id for step, job_id in by_step.items()}
        return reply(StartedModel.model_construct(id=flow_id, job_ids=job_ids), 201)

    return await once(context, idempotency_key, make)


def _steps(context: RequestContext, given: list[NewStep]) -> list[Step]:
    made: dict[str, Step] = {}
    for each in given:
        if each.step in made:
            raise InvalidFlow(f"two steps are named {each.step!r}; give each a unique name")
        ensure_may_create_as(context, each.created_by)
        facts = {name: value for name, value in each.given().items() if name not in _OF_STEP}
        if "tags" in facts:
            facts["tags"] = tuple(facts["tags"])
        options = EnqueueOptions(**facts, tenant_id=context.tenant_id)
        made[each.step] = Step(
            each.definition,
            each.payload,
            options,
            name=each.step,
            on_parent_failure=each.on_parent_failure,
        )
    for each in given:
        for parent in each.after:
            if parent not in made:
                raise InvalidFlow(
                    f"{each.step!r} comes after {parent!r}, which is not a step of this flow"
                )
        made[each.step].after(*(made[parent] for parent in each.after))
        made[each.step].after(*(JobId(job_id) for job_id in each.after_jobs))
    return list(made.values())


@router.get("/{flow_id:int}", response_model=FlowModel)
async def get_flow(context: Reader, flow_id: Number) -> Response:
    """Get a flow with the number of its jobs in each state."""
    async with _own(context):
        return reply(FlowModel.of(await flows.get(context.session, context.tenant_id, flow_id)))


@router.get("/{flow_id:int}/jobs", response_model=Page[FlowJobModel])
async def list_flow_jobs(
    context: Reader, flow_id: Number, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List the jobs of a flow, in the order they were enqueued."""
    after = read_cursor(cursor, int)
    async with _own(context):
        await flows.get(context.session, context.tenant_id, flow_id)
    found = await flows.jobs_of(
        context.session,
        context.tenant_id,
        flow_id,
        after=None if after is None else JobId(after),
        limit=limit,
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, FlowJobModel.of, following=following, model=Page[FlowJobModel])


@router.post("/{flow_id:int}/cancel", response_model=CountModel)
async def cancel_flow(
    context: Writer, flow_id: Number, why: Annotated[Reason | None, Body()] = None
) -> Response:
    """Cancel the live jobs of a flow."""
    reason = (why and why.reason) or f"its flow was canceled by {context.caller.actor}"
    async with _own(context):
        count = await flows.cancel(context.session, context.tenant_id, flow_id, reason=reason)
    return reply(CountModel.model_construct(jobs=count))


@router.post("/{flow_id:int}/retry", response_model=CountModel)
async def retry_flow(context: Writer, flow_id: Number) -> Response:
    """Retry the failed and canceled jobs of a flow."""
    async with _own(context):
        count = await flows.retry(context.session, context.tenant_id, flow_id)
    return reply(CountModel.model_construct(jobs=count))
