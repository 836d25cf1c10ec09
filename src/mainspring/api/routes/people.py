"""/people: who may log in."""

from typing import Annotated

from mainspring.api.auth import RequestContext, address_of, reading, writing
from mainspring.api.models.base import Page
from mainspring.api.models.people import LoginModel, NewPerson, PersonChanges, PersonModel
from mainspring.api.models.sessions import EndedSessions
from mainspring.api.responses import (
    nothing,
    numbered_place,
    page,
    read_numbered_place,
    reply,
    tagged,
)
from mainspring.api.routes.parameters import (
    After,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Named,
    once,
)
from mainspring.api.routing import Body, Depends, Request, Response, Router
from mainspring.db.tenant_sessions import TransactionSession
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person
from mainspring.services import people, sessions, tokens

router = Router()
Reader = Annotated[RequestContext, Depends(reading("people"))]
Writer = Annotated[RequestContext, Depends(writing("people"))]


def _shown(person: Person, status: int = 200) -> Response:
    return tagged(PersonModel.of(person), _facts(person), status)


def _facts(person: Person) -> object:
    return [person.person_id, person.role, person.is_disabled]


@router.get("/people", tags=["people"], response_model=Page[PersonModel])
async def list_people(
    context: Reader, after: After = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List people by name."""
    name, number = read_numbered_place(cursor, after)
    found = await people.list_people(
        context.session, context.own_tenant, after=name, after_id=number, limit=limit
    )
    last = found[-1] if len(found) == limit else None
    following = None if last is None else numbered_place(last.name, last.person_id)
    return page(found, PersonModel.of, following=following, model=Page[PersonModel])


@router.post("/people", tags=["people"], response_model=PersonModel, status_code=201)
async def create_person(
    context: Writer,
    person: Annotated[NewPerson, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a person who may log in."""
    tenant_id = context.tenant_for(Role(person.role))

    async def make(session: TransactionSession) -> Response:
        made = await people.create(
            session, person.name, person.role, tenant_id=tenant_id, by=context.caller
        )
        return _shown(made, 201)

    return await once(context, idempotency_key, make)


@router.get("/people/{name}", tags=["people"], response_model=PersonModel)
async def get_person(context: Reader, name: Named) -> Response:
    """Get a person."""
    return _shown(await people.get(context.session, name, context.own_tenant))


@router.patch("/people/{name}", tags=["people"], response_model=PersonModel)
async def update_person(
    context: Writer,
    name: Named,
    changes: Annotated[PersonChanges, Body()],
    if_match: IfMatch = None,
) -> Response:
    """Change a person's role or access, from the next request on, if they still match If-Match."""
    is_disabled = None if changes.is_enabled is None else not changes.is_enabled
    async with context.editing("person", name) as session:
        found = await people.get(session, name, context.own_tenant)
        context.ensure_unchanged(_facts(found), if_match)
        changed = await people.change(
            session,
            name,
            context.own_tenant,
            role=changes.role,
            is_disabled=is_disabled,
            by=context.caller,
        )
    return _shown(changed)


@router.delete("/people/{name}", tags=["people"], status_code=204, response_class=Response)
async def delete_person(context: Writer, name: Named, if_match: IfMatch = None) -> Response:
    """Delete a person with their sessions and the tokens they created."""
    async with context.editing("person", name) as session:
        found = await people.get(session, name, context.own_tenant)
        context.ensure_unchanged(_facts(found), if_match)
        await people.delete(session, name, context.own_tenant)
    return nothing()


@router.post("/people/{name}/login", tags=["people"], response_model=LoginModel, status_code=201)
async def create_login_link(context: Writer, name: Named, request: Request) -> Response:
    """Create a login link for a person; it works once, within 15 minutes."""
    base = address_of(request, context.settings)
    async with context.session.begin() as session:
        text = await tokens.open_login(session, name, context.own_tenant, by=context.caller)
    return reply(LoginModel.model_construct(url=f"{base}/login?code={text}"), 201)


@router.delete("/people/{name}/sessions", tags=["people"], response_model=EndedSessions)
async def end_person_sessions(context: Writer, name: Named) -> Response:
    """Log a person out everywhere."""
    async with context.session.begin() as session:
        count = await sessions.end_all(session, name, context.own_tenant)
    return reply(EndedSessions.model_construct(ended=count))
