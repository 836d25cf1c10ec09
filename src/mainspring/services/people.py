"""Use cases of people: who may log in, and as what."""

from mainspring.db.sessions import Session
from mainspring.domain.access.roles import (
    Caller,
    Role,
    ensure_may_grant,
    ensure_role,
    ensure_tenant_of,
)
from mainspring.domain.access.tokens import Person, ensure_name
from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.access import DuplicatePerson, PersonNotFound
from mainspring.domain.suggestions import closest
from mainspring.store import people as store


async def create(
    session: Session,
    name: str,
    role: str,
    *,
    tenant_id: str | None = None,
    by: Caller | None = None,
) -> Person:
    """`by` is who asks, if anyone but the owner of the database does."""
    ensure_name(name)
    known = _role_of_person(role)
    ensure_tenant_of(known, tenant_id)
    if by is not None:
        ensure_may_grant(by, known)
    if not await store.create(session, name, known, tenant_id=tenant_id):
        raise DuplicatePerson(name)
    return await get(session, name, tenant_id)


async def change(
    session: Session,
    name: str,
    tenant_id: str | None = None,
    *,
    role: str | None = None,
    is_disabled: bool | None = None,
) -> Person:
    """Another role in the same tenant, or whether the person may come in at all."""
    chosen = None if role is None else _role_of_person(role)
    known = await get(session, name, tenant_id)
    if chosen is not None:
        ensure_tenant_of(chosen, known.tenant_id)
    await store.change(session, name, tenant_id, role=chosen, is_disabled=is_disabled)
    return await get(session, name, tenant_id)


async def delete(session: Session, name: str, tenant_id: str | None = None) -> None:
    if not await store.delete(session, name, tenant_id):
        raise await _not_found(session, name, tenant_id)


async def get(session: Session, name: str, tenant_id: str | None = None) -> Person:
    person = await store.get(session, name, tenant_id)
    if person is None:
        raise await _not_found(session, name, tenant_id)
    return person


async def list_people(
    session: Session,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    limit: int = 100,
) -> list[Person]:
    return await store.list_people(session, tenant_id, after=after, limit=limit)


async def ensure_operator(session: Session, name: str = "operator") -> Person | None:
    """The first person there is, an operator; None if there is someone already."""
    if await store.has_any(session):
        return None
    try:
        return await create(session, name, Role.OPERATOR)
    except DuplicatePerson:
        return None  # Of servers that start together, another was first.


def _role_of_person(role: str) -> Role:
    known = ensure_role(role)
    if known is Role.WORKER:
        raise InvalidOption("role", "cannot be worker for a person; create a token for a worker")
    return known


async def _not_found(session: Session, name: str, tenant_id: str | None) -> PersonNotFound:
    known = await store.names(session, tenant_id)
    return PersonNotFound(str(name), closest(str(name), known))
