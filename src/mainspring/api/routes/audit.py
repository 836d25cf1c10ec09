"""/audit: who changed what."""

from collections.abc import Sequence
from typing import Annotated

from mainspring.api.auth import RequestContext, reading
from mainspring.api.models.audit import AuditModel
from mainspring.api.models.base import Filter, Page, Text
from mainspring.api.responses import large_page, read_cursor
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Depends, Query, Response, Router
from mainspring.domain.audit import AuditEntry
from mainspring.services import audit

router = Router()
Reader = Annotated[RequestContext, Depends(reading("audit"))]


@router.get("/audit", tags=["audit"], response_model=Page[AuditModel])
async def list_audit(
    context: Reader,
    actor: Annotated[
        Filter[Text] | None,
        Query(description="Who made the change: a name, or an id such as person:7."),
    ] = None,
    action: Annotated[
        Filter[Text] | None, Query(description="What was done, e.g. update or cancel.")
    ] = None,
    noun: Annotated[
        Filter[Text] | None, Query(description="Kind of object, e.g. schedule or job.")
    ] = None,
    subject: Annotated[Filter[Text] | None, Query(description="Name or id of the object.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List changes, newest first; an operator who names no tenant sees those of all tenants. A
    page has at most 4 MiB: it may be shorter than `limit`, and `next_cursor` continues."""

    async def load(before: int | None, count: int) -> Sequence[AuditEntry]:
        return await audit.list_audit(
            context.session,
            context.own_tenant,
            actor=actor,
            action=action,
            noun=noun,
            subject=subject,
            before=before,
            limit=count,
        )

    return await large_page(
        load,
        AuditModel.of,
        lambda entry: entry.id,
        after=read_cursor(cursor, int),
        limit=limit,
    )
