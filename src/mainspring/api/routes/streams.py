"""Streams: a job, a list of jobs or the summary, as they change."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import astuple
from typing import Annotated, Any

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.jobs import SummaryModel, WatchedJobModel
from mainspring.api.models.streams import OutputModel, WatchedModel
from mainspring.api.routes.jobs import Filters, own, summaries
from mainspring.api.routes.parameters import Number
from mainspring.api.routing import Depends, Header, Query, Response, Router
from mainspring.api.streams import Topic, follow
from mainspring.domain.types import JobId
from mainspring.services import jobs
from mainspring.services.streams import Watched

router = Router(prefix="/jobs", tags=["streams"])

Reader = Annotated[RequestContext, Depends(reading("jobs"))]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=200, description="Id of the last event received."),
]


def _events(name: str, data: str) -> dict[int | str, dict[str, Any]]:
    """What a stream answers with."""
    said = "Server-sent events; `data` is JSON, `id` is for Last-Event-ID."
    example = f"id: 3f9a\nevent: {name}\ndata: {data}\n\n"
    content = {"schema": {"type": "string"}, "example": example}
    return {200: {"description": said, "content": {"text/event-stream": content}}}


def make_frame(watched: Watched) -> bytes:
    if watched.job is None:
        raise ValueError("a job that is gone has no frame")
    output = watched.output and OutputModel.model_construct(
        stdout_tail=watched.output.stdout_tail, stderr_tail=watched.output.stderr_tail
    )
    made = WatchedModel.model_construct(job=WatchedJobModel.of(watched.job), output=output)
    return made.model_dump_json().encode()


@router.get(
    "/stream",
    responses=_events("jobs", '{"items": [], "next_cursor": null}'),
    response_class=Response,
)
async def stream_jobs(
    context: Reader,
    filters: Filters,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of items.")] = 50,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the first page of a job list whenever it changes, as `jobs` events."""
    asked = filters.of(context)
    session, tenant_id = context.requests.searching(), context.listed_tenant

    async def look() -> bytes:
        found, following = await jobs.list_jobs(session, tenant_id, asked, limit=limit)
        return bytes(summaries(found, following).body)

    key = (tenant_id, limit, *astuple(asked))
    return _stream(context, _looking(context, "jobs", key, look=look, known=last_event_id))


@router.get(
    "/summary/stream",
    responses=_events("summary", '{"counts": {"queued": 3}}'),
    response_class=Response,
)
async def stream_job_summary(context: Reader, last_event_id: LastEventId = None) -> Response:
    """Stream the summary whenever it changes, as `summary` events."""
    session, tenant_id, creator = context.requests, context.listed_tenant, context.creator

    async def look() -> bytes:
        summary = await context.server.summaries.get(session, tenant_id, created_by=creator)
        return SummaryModel.of(summary).model_dump_json().encode()

    key = (tenant_id, creator)
    return _stream(context, _looking(context, "summary", key, look=look, known=last_event_id))


@router.get(
    "/{job_id:int}/stream",
    responses=_events("job", '{"job": {"id": "7"}, "output": null}'),
    response_class=Response,
)
async def stream_job(
    context: Reader, job_id: Number, last_event_id: LastEventId = None
) -> Response:
    """Stream a job with its output whenever it changes, as `job` events and a final `end`."""
    number = JobId(job_id)
    async with own(context):
        await jobs.get(context.session, number, context.tenant_id)

    async def frames() -> AsyncGenerator[bytes, None]:
        with context.server.hub.job(number) as topic:
            async for frame in _follow(context, topic, last_event_id):
                yield frame

    return _stream(context, frames())


async def _looking(
    context: RequestContext,
    name: str,
    key: tuple[object, ...],
    *,
    look: Callable[[], Awaitable[bytes]],
    known: str | None,
) -> AsyncGenerator[bytes, None]:
    with context.server.hub.look(name, key, look, tenant=context.requests.who) as topic:
        async for frame in _follow(context, topic, known):
            yield frame


def _stream(context: RequestContext, frames: AsyncGenerator[bytes, None]) -> Response:
    return context.server.hub.stream(context.caller.identity, frames)


def _follow(context: RequestContext, topic: Topic, known: str | None) -> AsyncIterator[bytes]:
    return follow(topic, known=known, ensure_allowed=context.ensure_same_rights)
