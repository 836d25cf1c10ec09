"""/retention: how long things are kept."""

from datetime import timedelta
from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page, Text
from mainspring.api.models.retention import RetentionIn, RetentionModel, RetentionPreviewModel
from mainspring.api.responses import nothing, page, read_cursor, reply
from mainspring.api.routes.parameters import Cursor, Limit
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.domain.access.roles import Role
from mainspring.domain.retention import RetentionBounds, RetentionPolicy
from mainspring.domain.types import LONGEST_DELAY
from mainspring.services import retention

router = Router(prefix="/retention", tags=["retention"])
Reader = Annotated[RequestContext, Depends(reading("retention"))]
Writer = Annotated[RequestContext, Depends(writing("retention"))]
Kind = Annotated[Text, Query(description="jobs, audit, slots or events.")]
State = Annotated[Text | None, Query(description="Only the policy of this state of jobs.")]


def _bounds(context: RequestContext) -> RetentionBounds | None:
    """Those of the caller; None for an operator."""
    is_operator = context.caller.role is Role.OPERATOR
    return None if is_operator else retention.bounds_of(context.settings)


@router.get("", response_model=Page[RetentionModel])
async def list_retention(context: Reader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """List retention policies and defaults, by kind, tenant and state: those for all tenants and
    those of the tenant. An operator who names no tenant sees those of all tenants."""
    after = read_cursor(cursor, list) or []
    found = await retention.list_policies(context.session, context.own_tenant)
    shown = [policy for policy in found if _place(policy) > after][:limit]
    following = _place(shown[-1]) if len(shown) == limit else None
    return page(shown, RetentionModel.of, following=following, model=Page[RetentionModel])


def _place(policy: RetentionPolicy) -> list[str]:
    return [policy.kind, policy.tenant_id or "", policy.state or ""]


@router.put("", response_model=RetentionModel)
async def set_retention(context: Writer, policy: Annotated[RetentionIn, Body()]) -> Response:
    """Save a retention policy of the tenant; an operator who names none saves it for all tenants.
    An admin keeps within the bounds of the settings, and cannot shorten that of the audit."""
    async with context.editing("retention", policy.kind) as session:
        saved = await retention.set_policy(
            session,
            policy.kind,
            keep=policy.keep,
            tenant_id=context.own_tenant,
            state=policy.state,
            bounds=_bounds(context),
        )
    return reply(RetentionModel.of(saved))


@router.delete("", status_code=204, response_class=Response)
async def unset_retention(context: Writer, kind: Kind, state: State = None) -> Response:
    """Remove a retention policy of the tenant, so that the next more general one applies; an
    operator who names no tenant removes the one for all tenants."""
    async with context.editing("retention", kind) as session:
        await retention.unset_policy(
            session, kind, tenant_id=context.own_tenant, state=state, bounds=_bounds(context)
        )
    return nothing()


@router.get("/preview", response_model=RetentionPreviewModel)
async def preview_retention(
    context: Reader,
    kind: Annotated[
        Text | None, Query(description="jobs, audit, slots or events; all if omitted.")
    ] = None,
    state: Annotated[Text | None, Query(description="State of jobs that `keep` is for.")] = None,
    keep: Annotated[
        float | None,
        Query(
            ge=0,
            le=LONGEST_DELAY.total_seconds(),
            description="In seconds: count as if this policy of `kind` were saved.",
        ),
    ] = None,
) -> Response:
    """Count what the next pass removes, by day, by the policies that are saved or with one more.
    Nothing is saved or removed."""
    period = None if keep is None else timedelta(seconds=keep)
    days = await retention.preview(
        context.searching, kind, keep=period, tenant_id=context.own_tenant, state=state
    )
    return reply(RetentionPreviewModel.of(days))
