"""/tenants."""

from dataclasses import asdict
from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Page
from mainspring.api.models.tenants import (
    NewTenant,
    TenantChanges,
    TenantContentsModel,
    TenantDeletionModel,
    TenantModel,
)
from mainspring.api.responses import JSON, page, read_cursor, tagged
from mainspring.api.routes.parameters import (
    After,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Named,
    once,
)
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.errors import InvalidOption, TenantNotFound
from mainspring.domain.tenants import TenantState
from mainspring.services import tenants

router = Router()
Reader = Annotated[RequestContext, Depends(reading("tenants"))]
Writer = Annotated[RequestContext, Depends(writing("tenants"))]


def _shown(state: TenantState, status: int = 200) -> Response:
    return tagged(TenantModel.of(state), _facts(state), status)


def _facts(state: TenantState) -> object:
    return [state.weight, state.max_running, state.zone, state.is_enabled]


@router.get("/tenants", tags=["tenants"], response_model=Page[TenantModel])
async def list_tenants(
    context: Reader, after: After = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List tenants by name: an operator sees all, everyone else their own."""
    found = await tenants.list_tenants(
        context.session, after=read_cursor(cursor, str) or after, limit=limit
    )
    following = found[-1].tenant_id if len(found) == limit else None
    return page(found, TenantModel.of, following=following, model=Page[TenantModel])


@router.post("/tenants", tags=["tenants"], response_model=TenantModel, status_code=201)
async def create_tenant(
    context: Writer,
    tenant: Annotated[NewTenant, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a tenant."""
    facts = {name: value for name, value in tenant.given().items() if value is not None}
    name = facts.pop("name")

    async def make(session: TransactionSession) -> Response:
        return _shown(await tenants.create(session, name, **facts), 201)

    return await once(context, idempotency_key, make)


@router.get("/tenants/{name}", tags=["tenants"], response_model=TenantModel)
async def get_tenant(context: Reader, name: Named) -> Response:
    """Get a tenant."""
    if context.caller.tenant_id not in (None, name):
        raise TenantNotFound(name)
    return _shown(await tenants.get(context.session, name))


@router.patch("/tenants/{name}", tags=["tenants"], response_model=TenantModel)
async def update_tenant(
    context: Writer,
    name: Named,
    changes: Annotated[TenantChanges, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Update, disable or enable a tenant, if it still matches If-Match."""
    facts = changes.given()
    for field in ("weight", "zone", "is_enabled"):
        if field in facts and facts[field] is None:
            raise InvalidOption(field, "must have a value")
    async with context.editing("tenant", name) as session:
        context.ensure_unchanged(_facts(await tenants.get(session, name)), if_match)
        return _shown(await tenants.update(session, name, facts))


@router.delete(
    "/tenants/{name}",
    tags=["tenants"],
    response_model=TenantDeletionModel,
    status_code=202,
    responses={200: {"model": TenantDeletionModel, "description": "The result of a dry run."}},
)
async def delete_tenant(
    context: Writer,
    name: Named,
    dry_run: Annotated[bool, Query(description="Only count what the tenant has.")] = False,
    if_match: IfMatch = None,
) -> Response:
    """Disable a tenant and delete it with all it has, in a background job, or count what it has."""
    await context.server.install()
    async with context.editing("tenant", name) as session:
        context.ensure_unchanged(_facts(await tenants.get(session, name)), if_match)
        found = TenantContentsModel(**asdict(await tenants.contents(session, name)))
        job_id = None if dry_run else await tenants.delete(session, name)
    context.server.forget_tenant(name)
    made = TenantDeletionModel(job_id=job_id, contents=found)
    return Response(made.model_dump_json().encode(), 200 if dry_run else 202, media_type=JSON)
