"""/flows and /approvals: jobs that wait, for each other or for someone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Response

from mainspring.api.auth import Desk, reading, writing
from mainspring.api.errors import Refused
from mainspring.api.models.base import IdIn, Page
from mainspring.api.models.flows import (
    ApprovalModel,
    CountModel,
    FlowJobModel,
    FlowModel,
    NewFlow,
    NewStep,
    StartedModel,
)
from mainspring.api.models.jobs import Reason
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import page, read_cursor, reply
from mainspring.api.routes.parameters import Cursor, IdempotencyKey, Limit, Number, once
from mainspring.db.database import Database
from mainspring.db.plans import arun
from mainspring.domain.access.roles import Role
from mainspring.domain.errors import FlowNotFound, InvalidFlow
from mainspring.domain.flows import Step
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId
from mainspring.services import approvals, flows

router = APIRouter(prefix="/flows", tags=["flows"], route_class=JsonRoute)
approval_router = APIRouter(prefix="/approvals", tags=["approvals"], route_class=JsonRoute)

Reader = Annotated[Desk, Depends(reading("flows"))]
Writer = Annotated[Desk, Depends(writing("flows"))]
ApprovalReader = Annotated[Desk, Depends(reading("approvals"))]
_OF_STEP = ("step", "definition", "payload", "after", "after_jobs", "on_parent_failure")


@router.get("", response_model=Page[FlowModel])
async def list_flows(
    desk: Reader,
    before: Annotated[IdIn | None, Query(description="Only flows older than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Flows, the newest first."""
    older = read_cursor(cursor, int) or before
    found = await flows.list_flows(desk.database, desk.listed_tenant, before=older, limit=limit)
    following = found[-1].id if len(found) == limit else None
    return page(found, FlowModel.of, following=following, model=Page[FlowModel])


@router.post("", response_model=StartedModel, status_code=201)
async def start(
    desk: Writer, flow: Annotated[NewFlow, Body()], idempotency_key: IdempotencyKey = None
) -> Response:
    """Enqueue jobs that wait for each other."""
    steps = _steps(desk, flow.steps)

    async def make(database: Database) -> Response:
        plan = desk.reception.enqueuer.enqueue_flow(flow.name, steps, desk.tenant_id)
        flow_id, by_step = await arun(plan, database)
        job_ids = {step.name: job_id for step, job_id in by_step.items()}
        return reply(StartedModel.model_construct(id=flow_id, job_ids=job_ids), 201)

    return await once(desk, idempotency_key, make)


def _steps(desk: Desk, given: list[NewStep]) -> list[Step]:
    made: dict[str, Step] = {}
    for each in given:
        if each.step in made:
            raise InvalidFlow(f"there are two steps {each.step!r}; give each a name of its own")
        facts = {name: value for name, value in each.given().items() if name not in _OF_STEP}
        if "tags" in facts:
            facts["tags"] = tuple(facts["tags"])
        options = EnqueueOptions(**facts, tenant_id=desk.tenant_id)
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
                raise InvalidFlow(f"{each.step!r} comes after {parent!r}, which is no step here")
        made[each.step].after(*(made[parent] for parent in each.after))
        made[each.step].after(*(JobId(job_id) for job_id in each.after_jobs))
    return list(made.values())


@router.get("/{flow_id:int}", response_model=FlowModel)
async def get_flow(desk: Reader, flow_id: Number) -> Response:
    """One flow with what its jobs came to."""
    async with _own(desk):
        return reply(FlowModel.of(await flows.get(desk.database, desk.tenant_id, flow_id)))


@router.get("/{flow_id:int}/jobs", response_model=Page[FlowJobModel])
async def list_flow_jobs(
    desk: Reader, flow_id: Number, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The jobs of a flow, in the order they were enqueued."""
    after = read_cursor(cursor, int)
    async with _own(desk):
        await flows.get(desk.database, desk.tenant_id, flow_id)
    found = await flows.jobs_of(
        desk.database,
        desk.tenant_id,
        flow_id,
        after=None if after is None else JobId(after),
        limit=limit,
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, FlowJobModel.of, following=following, model=Page[FlowJobModel])


@router.post("/{flow_id:int}/cancel", response_model=CountModel)
async def cancel(
    desk: Writer, flow_id: Number, why: Annotated[Reason | None, Body()] = None
) -> Response:
    """Cancel what is live of a flow."""
    reason = (why and why.reason) or f"its flow was canceled by {desk.caller.actor}"
    async with _own(desk):
        count = await flows.cancel(desk.database, desk.tenant_id, flow_id, reason=reason)
    return reply(CountModel.model_construct(jobs=count))


@router.post("/{flow_id:int}/retry", response_model=CountModel)
async def retry(desk: Writer, flow_id: Number) -> Response:
    """Put what failed or was canceled in a flow back."""
    async with _own(desk):
        count = await flows.retry(desk.database, desk.tenant_id, flow_id)
    return reply(CountModel.model_construct(jobs=count))


@asynccontextmanager
async def _own(desk: Desk) -> AsyncIterator[None]:
    """A member is told that someone else may see what it does not."""
    try:
        yield
    except FlowNotFound as error:
        if desk.caller.role is Role.MEMBER:
            raise Refused(
                HTTPStatus.NOT_FOUND,
                error.code,
                f"you have no flow {error.flow_id}; members see and steer only what they have "
                "enqueued themselves. An admin can do it for any with `mainspring admin flows`",
            ) from None
        raise


@approval_router.get("", response_model=Page[ApprovalModel])
async def list_approvals(
    desk: ApprovalReader,
    after: Annotated[IdIn | None, Query(description="Only jobs newer than this id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Jobs that await approval, the longest waiting first."""
    newer = read_cursor(cursor, int) or after
    found = await approvals.list_open(
        desk.database,
        desk.listed_tenant,
        after=None if newer is None else JobId(newer),
        limit=limit,
    )
    following = found[-1].job_id if len(found) == limit else None
    return page(found, ApprovalModel.of, following=following, model=Page[ApprovalModel])


@approval_router.get("/{job_id:int}", response_model=ApprovalModel)
async def get_approval(desk: ApprovalReader, job_id: Number) -> Response:
    """What one job asks for, and who has said what."""
    found = await approvals.get(desk.database, desk.tenant_id, JobId(job_id))
    return reply(ApprovalModel.of(found))
