"""/errors: what fails, grouped."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.base import Filter, InstantIn, Page, Text
from mainspring.api.models.error_groups import ErrorGroupDetailsModel, ErrorGroupModel
from mainspring.api.responses import invalid_cursor, page, read_cursor, reply
from mainspring.api.routes.parameters import Cursor, Limit, Named
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.error_groups import GroupPlace
from mainspring.services import error_groups

router = Router(prefix="/errors", tags=["errors"])
Reader = Annotated[RequestContext, Depends(reading("errors"))]


def _read_place(cursor: str | None) -> GroupPlace | None:
    match read_cursor(cursor, list):
        case None:
            return None
        case [bool(is_new), int(count), str(tenant_id), str(key)] if 0 < count < 2**63:
            return GroupPlace(is_new, count, tenant_id, key)
        case _:
            raise invalid_cursor()


@router.get("", response_model=Page[ErrorGroupModel])
async def list_error_groups(
    context: Reader,
    since: Annotated[
        InstantIn | None, Query(description="Only errors since then; by default for 24 hours.")
    ] = None,
    definition: Annotated[
        Filter[Text] | None, Query(description="Only errors of these definitions.")
    ] = None,
    is_new: Annotated[
        bool | None, Query(description="Only errors that were not seen in the 30 days before.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List errors by group: new ones first, then those with the most failures. A failure is listed
    within some seconds."""
    found = await error_groups.list_groups(
        context.session,
        context.listed_tenant,
        since=since,
        definition=definition,
        is_new=is_new,
        after=_read_place(cursor),
        limit=limit,
    )
    last = found[-1] if len(found) == limit else None
    following = last and [last.is_new, last.count, last.tenant_id, last.key]
    return page(found, ErrorGroupModel.of, following=following, model=Page[ErrorGroupModel])


@router.get("/{name}", response_model=ErrorGroupDetailsModel)
async def get_error_group(context: Reader, name: Named) -> Response:
    """Get an error by its key, with its failures by day."""
    found = await error_groups.get(context.session, context.tenant_id, name)
    return reply(ErrorGroupDetailsModel.of(found))
