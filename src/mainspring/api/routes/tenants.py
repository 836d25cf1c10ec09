"""/tenants, /people, /tokens, /workers, /queues, /audit and /me: who is here, and who did what."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request, Response

from mainspring.api.auth import Desk, known, reading, writing
from mainspring.api.models.base import Page, Text
from mainspring.api.models.tenants import (
    AuditModel,
    CallerModel,
    CreatedTokenModel,
    LoginModel,
    NewPerson,
    NewTenant,
    NewToken,
    PersonChanges,
    PersonModel,
    QueueModel,
    Queues,
    TenantFields,
    TenantModel,
    TokenModel,
    WorkerModel,
    Workers,
)
from mainspring.api.pages import address_of
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import nothing, page, read_cursor, reply, tagged
from mainspring.api.routes.parameters import After, Cursor, IdempotencyKey, Limit, Named, once
from mainspring.db.database import Database
from mainspring.domain.access.roles import Role, ensure_may_grant
from mainspring.domain.errors import InvalidOption, TenantNotFound
from mainspring.domain.tenants import TenantState
from mainspring.services import audit, people, tenants, tokens
from mainspring.services import jobs as job_services
from mainspring.services import workers as worker_services

router = APIRouter(route_class=JsonRoute)

TenantReader = Annotated[Desk, Depends(reading("tenants"))]
TenantWriter = Annotated[Desk, Depends(writing("tenants"))]
PeopleReader = Annotated[Desk, Depends(reading("people"))]
PeopleWriter = Annotated[Desk, Depends(writing("people"))]
TokenReader = Annotated[Desk, Depends(reading("tokens"))]
TokenWriter = Annotated[Desk, Depends(writing("tokens"))]
WorkerReader = Annotated[Desk, Depends(reading("workers"))]
AuditReader = Annotated[Desk, Depends(reading("audit"))]
JobReader = Annotated[Desk, Depends(reading("jobs"))]
Known = Annotated[Desk, Depends(known())]


# Tenants


def _shown(state: TenantState, status: int = 200) -> Response:
    return tagged(TenantModel.of(state), _facts(state), status)


def _facts(state: TenantState) -> object:
    return [state.weight, state.max_running]


@router.get("/tenants", tags=["tenants"], response_model=Page[TenantModel])
async def list_tenants(
    desk: TenantReader, after: After = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Tenants by name: an operator sees all, everyone else its own."""
    found = await tenants.list_tenants(
        desk.database, after=read_cursor(cursor, str) or after, limit=limit
    )
    following = found[-1].tenant_id if len(found) == limit else None
    return page(found, TenantModel.of, following=following, model=Page[TenantModel])


@router.post("/tenants", tags=["tenants"], response_model=TenantModel, status_code=201)
async def create_tenant(
    desk: TenantWriter,
    tenant: Annotated[NewTenant, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Add a tenant."""
    facts = {name: value for name, value in tenant.given().items() if value is not None}
    name = facts.pop("name")

    async def make(database: Database) -> Response:
        return _shown(await tenants.create(database, name, **facts), 201)

    return await once(desk, idempotency_key, make)


@router.get("/tenants/{name}", tags=["tenants"], response_model=TenantModel)
async def get_tenant(desk: TenantReader, name: Named) -> Response:
    """One tenant."""
    if desk.caller.tenant_id not in (None, name):
        raise TenantNotFound(name)
    return _shown(await tenants.get(desk.database, name))


@router.patch("/tenants/{name}", tags=["tenants"], response_model=TenantModel)
async def update_tenant(
    desk: TenantWriter, name: Named, changes: Annotated[TenantFields, Body()]
) -> Response:
    """Change what a tenant may take, if it is as If-Match says."""
    facts = changes.given()
    if "weight" in facts and facts["weight"] is None:
        raise InvalidOption("weight", "must have a value")
    async with desk.editing("tenant", name) as held:
        desk.ensure_unchanged(_facts(await tenants.get(held, name)))
        return _shown(await tenants.update(held, name, facts))


# People


@router.get("/people", tags=["people"], response_model=Page[PersonModel])
async def list_people(
    desk: PeopleReader, after: After = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """People by name."""
    found = await people.list_people(
        desk.database, desk.own_tenant, after=read_cursor(cursor, str) or after, limit=limit
    )
    following = found[-1].name if len(found) == limit else None
    return page(found, PersonModel.of, following=following, model=Page[PersonModel])


@router.post("/people", tags=["people"], response_model=PersonModel, status_code=201)
async def create_person(
    desk: PeopleWriter,
    person: Annotated[NewPerson, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Add someone who may log in."""
    tenant_id = desk.tenant_for(Role(person.role))

    async def make(database: Database) -> Response:
        made = await people.create(
            database, person.name, person.role, tenant_id=tenant_id, by=desk.caller
        )
        return reply(PersonModel.of(made), 201)

    return await once(desk, idempotency_key, make)


@router.get("/people/{name}", tags=["people"], response_model=PersonModel)
async def get_person(desk: PeopleReader, name: Named) -> Response:
    """One person."""
    return reply(PersonModel.of(await people.get(desk.database, name, desk.own_tenant)))


@router.patch("/people/{name}", tags=["people"], response_model=PersonModel)
async def change_person(
    desk: PeopleWriter, name: Named, changes: Annotated[PersonChanges, Body()]
) -> Response:
    """Give a person another role, or keep it out, from the next request on."""
    if changes.role is not None:
        ensure_may_grant(desk.caller, Role(changes.role))
    async with desk.editing("person", name) as held:
        changed = await people.change(
            held, name, desk.own_tenant, role=changes.role, is_disabled=changes.is_disabled
        )
    return reply(PersonModel.of(changed))


@router.delete("/people/{name}", tags=["people"], status_code=204, response_class=Response)
async def delete_person(desk: PeopleWriter, name: Named) -> Response:
    """Remove a person with its tokens and sessions."""
    await people.delete(desk.database, name, desk.own_tenant)
    return nothing()


@router.post("/people/{name}/login", tags=["people"], response_model=LoginModel, status_code=201)
async def open_login(desk: PeopleWriter, name: Named, request: Request) -> Response:
    """A link with which the person logs in, once and within a quarter of an hour."""
    person = await people.get(desk.database, name, desk.own_tenant)
    ensure_may_grant(desk.caller, person.role)
    text = await tokens.open_login(desk.database, name)
    base = address_of(request, desk.settings)
    return reply(LoginModel.model_construct(url=f"{base}/login?code={text}"), 201)


# Tokens


@router.get("/tokens", tags=["tokens"], response_model=Page[TokenModel])
async def list_tokens(
    desk: TokenReader,
    ended: Annotated[bool, Query(description="Those that let nobody in, too.")] = False,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Tokens by name."""
    found = await tokens.list_tokens(
        desk.database,
        desk.own_tenant,
        after=read_cursor(cursor, str) or after,
        limit=limit,
        with_ended=ended,
    )
    following = found[-1].name if len(found) == limit else None
    return page(found, TokenModel.of, following=following, model=Page[TokenModel])


@router.post("/tokens", tags=["tokens"], response_model=CreatedTokenModel, status_code=201)
async def create_token(desk: TokenWriter, token: Annotated[NewToken, Body()]) -> Response:
    """Make a token; its text is in this answer and nowhere else."""
    async with desk.database.held() as held:
        made = await tokens.create(
            held,
            token.name,
            token.role,
            tenant_id=desk.tenant_for(Role(token.role)),
            scopes=token.scopes,
            life=token.expires_in,
            by=desk.caller,
        )
    details = TokenModel.of(made.token)
    return reply(CreatedTokenModel.model_construct(token=made.text, details=details), 201)


@router.get("/tokens/{name}", tags=["tokens"], response_model=TokenModel)
async def get_token(desk: TokenReader, name: Named) -> Response:
    """One token, without its text."""
    return reply(TokenModel.of(await tokens.get(desk.database, name, desk.own_tenant)))


@router.post("/tokens/{name}/revoke", tags=["tokens"], response_model=TokenModel)
async def revoke_token(desk: TokenWriter, name: Named) -> Response:
    """Let nobody in by it, from the next request on."""
    return reply(TokenModel.of(await tokens.revoke(desk.database, name, desk.own_tenant)))


# Looking around


@router.get("/workers", tags=["workers"], response_model=Workers)
async def list_workers(desk: WorkerReader) -> Response:
    """All workers, the newest first."""
    found = await worker_services.list_workers(desk.database)
    return reply(Workers.model_construct(items=[WorkerModel.of(row) for row in found]))


@router.get("/queues", tags=["jobs"], response_model=Queues)
async def list_queues(desk: JobReader) -> Response:
    """The queues that hold live jobs."""
    found = await job_services.queue_counts(desk.database, desk.listed_tenant)
    return reply(Queues.model_construct(items=[QueueModel.of(row) for row in found]))


@router.get("/audit", tags=["audit"], response_model=Page[AuditModel])
async def list_audit(
    desk: AuditReader,
    actor: Annotated[Text | None, Query(description="Who did it.")] = None,
    noun: Annotated[Text | None, Query(description="Such as schedule or job.")] = None,
    subject: Annotated[Text | None, Query(description="Its name or id.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """What was changed, the newest first; an operator who names no tenant sees all."""
    found = await audit.list_audit(
        desk.database,
        desk.own_tenant,
        actor=actor,
        noun=noun,
        subject=subject,
        before=read_cursor(cursor, int),
        limit=limit,
    )
    following = found[-1].id if len(found) == limit else None
    return page(found, AuditModel.of, following=following, model=Page[AuditModel])


@router.get("/me", tags=["me"], response_model=CallerModel)
async def me(desk: Known) -> Response:
    """Who you are, and what you may do."""
    caller = desk.caller
    scopes = None if caller.scopes is None else list(caller.scopes)
    made = CallerModel.model_construct(
        actor=caller.actor, role=caller.role, tenant=caller.tenant_id, scopes=scopes
    )
    return reply(made)
