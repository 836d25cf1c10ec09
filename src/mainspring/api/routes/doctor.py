"""/doctor: what is wrong with the database."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Filter, Text
from mainspring.api.models.doctor import ReportModel
from mainspring.api.responses import reply
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.services import doctor
from mainspring.store import tokens as token_store

router = Router(prefix="/doctor", tags=["doctor"])
Reader = Annotated[RequestContext, Depends(reading("doctor"))]
Writer = Annotated[RequestContext, Depends(writing("doctor"))]
Only = Annotated[
    Filter[Text] | None, Query(description="Only these checks, such as D13; all by default.")
]


# Both run as the owner, on connections that no tenant shares and whose settings are the login's.


@router.get("", response_model=ReportModel)
async def examine_database(context: Reader, only: Only = None) -> Response:
    """Examine the database: what was found, what it means, and what to do about it."""
    found = await doctor.examine(context.server.database, context.settings, only=only or ())
    return reply(ReportModel.of(found))


@router.post("/fix", response_model=ReportModel)
async def fix_database(context: Writer, only: Only = None) -> Response:
    """Fix what needs no judgement, and examine the database afterwards."""
    enter = token_store.enter(context.digest)
    found = await doctor.fix(
        context.server.database, context.settings, only=only or (), enter=enter
    )
    return reply(ReportModel.of(found))
