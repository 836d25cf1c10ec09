"""Use cases of people: who may log in, and as what."""

from mainspring.db.sessions import Session
from mainspring.domain.access.grants import ensure_may_let_in
from mainspring.domain.access.names import the_one
from mainspring.domain.access.roles import Caller, Role, ensure_role, ensure_tenant_of
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
        ensure_may_let_in(by, known)
    return await _create(session, name, known, tenant_id=tenant_id)


async def _create(session: Session, name: str, role: Role, *, tenant_id: str | None) -> Person:
    person_id = await store.create(session, name, role, tenant_id=tenant_id)
    if person_id is None:
        raise DuplicatePerson(name)
    return await _get(session, person_id, name)


async def change(
    session: Session,
    name: str,
    tenant_id: str | None = None,
    *,
    role: str | None = None,
    is_disabled: bool | None = None,
    by: Caller | None = None,
) -> Person:
    """Another role in the same tenant, or whether the person may come in at all. `by` is who asks,
    if anyone but the owner of the database does."""
    chosen = None if role is None else _role_of_person(role)
    if by is not None and chosen is not None:
        ensure_may_let_in(by, chosen)
    known = await get(session, name, tenant_id)
    if chosen is not None:
        ensure_tenant_of(chosen, known.tenant_id)
    if by is not None and is_disabled is False:
        ensure_may_let_in(by, chosen or known.role)
    await store.change(session, known.person_id, role=chosen, is_disabled=is_disabled)
    return await _get(session, known.person_id, name)


async def delete(session: Session, name: str, tenant_id: str | None = None) -> None:
    """With their sessions, and the tokens that they made."""
    known = await get(session, name, tenant_id)
    await store.delete(session, known.person_id)


async def get(session: Session, name: str, tenant_id: str | None = None) -> Person:
    """Without a tenant, an operator of the name, or the person of the only tenant with one."""
    person = the_one(await store.find_all(session, name, tenant_id))
    if person is None:
        known = await store.names(session, tenant_id)
        raise PersonNotFound(str(name), closest(str(name), known))
    return person


async def _get(session: Session, person_id: int, name: str) -> Person:
    person = await store.get(session, person_id)
    if person is None:
        raise PersonNotFound(name)
    return person


async def find_all(session: Session, name: str) -> list[Person]:
    """Everyone of the name, one in each tenant at most."""
    return await store.find_all(session, name, None)


async def list_people(
    session: Session,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    after_id: int | None = None,
    limit: int = 100,
) -> list[Person]:
    """By name, after a name, or after one person of a name."""
    return await store.list_people(session, tenant_id, after=after, after_id=after_id, limit=limit)


async def ensure_operator(session: Session) -> Person | None:
    """The first person there is, the operator; None if there is someone already."""
    if await store.has_any(session):
        return None
    try:
        # The name is reserved for this one.
        return await _create(session, Role.OPERATOR.value, Role.OPERATOR, tenant_id=None)
    except DuplicatePerson:
        return None  # Of servers that start together, another was first.


def _role_of_person(role: str) -> Role:
    known = ensure_role(role)
    if known is Role.WORKER:
        raise InvalidOption("role", "cannot be worker for a person; create a token for a worker")
    return known
