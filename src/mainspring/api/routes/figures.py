"""/figures: how much was enqueued, started and ended, and how long it took."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.base import Filter, InstantIn
from mainspring.api.models.figures import FigureReportModel
from mainspring.api.responses import reply
from mainspring.api.routes.parameters import Given, NameFilter
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.figures import Key, read_span
from mainspring.services import figures

router = Router(prefix="/figures", tags=["figures"])
Reader = Annotated[RequestContext, Depends(reading("figures"))]


@router.get("", response_model=FigureReportModel)
async def get_figures(
    context: Reader,
    start: Annotated[
        InstantIn | None, Query(alias="from", description="From this time; a day ago by default.")
    ] = None,
    end: Annotated[
        InstantIn | None, Query(alias="to", description="Until this time; now by default.")
    ] = None,
    step: Annotated[
        Given | None,
        Query(
            description="1m, 5m, 15m, 1h, 6h or 1d; by default one that makes 200 points or less."
        ),
    ] = None,
    by: Annotated[
        Filter[Key] | None,
        Query(description="A series for each of these."),
    ] = None,
    queue: Annotated[NameFilter, Query(description="Only these queues.")] = None,
    definition: Annotated[NameFilter, Query(description="Only these definitions.")] = None,
    points: Annotated[bool, Query(description="Whether to list the points of a series.")] = True,
) -> Response:
    """Get figures of a time: jobs enqueued, started and ended, and how long they waited and ran."""
    report = await figures.read(
        context.searching,
        context.listed_tenant,
        start=start,
        end=end,
        span=None if step is None else read_span(step),
        by=by or (),
        queues=queue,
        definitions=definition,
        has_points=points,
    )
    return reply(FigureReportModel.of(report))
