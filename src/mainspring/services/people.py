"""Use cases of people: who may log in, and as what."""

import difflib

from mainspring.db.database import Database
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
from mainspring.store import people as store


async def create(
    database: Database,
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
    if not await database.arun(store.create(name, known, tenant_id)):
        raise DuplicatePerson(name)
    return await get(database, name, tenant_id)


async def change(
    database: Database,
    name: str,
    tenant_id: str | None = None,
    *,
    role: str | None = None,
    is_disabled: bool | None = None,
) -> Person:
    """Another role in the same tenant, or whether the person may come in at all."""
    chosen = None if role is None else _role_of_person(role)
    known = await get(database, name, tenant_id)
    if chosen is not None:
        ensure_tenant_of(chosen, known.tenant_id)
    await database.arun(store.change(name, tenant_id, role=chosen, is_disabled=is_disabled))
    return await get(database, name, tenant_id)


async def delete(database: Database, name: str, tenant_id: str | None = None) -> None:
    if not await database.arun(store.delete(name, tenant_id)):
        raise await _not_found(database, name, tenant_id)


async def get(database: Database, name: str, tenant_id: str | None = None) -> Person:
    rows = await database.arun(store.get(name, tenant_id))
    if not rows:
        raise await _not_found(database, name, tenant_id)
    return store.read_person(rows[0][0])


async def list_people(
    database: Database,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    limit: int = 100,
) -> list[Person]:
    call = store.list_people(tenant_id, after=after, limit=limit)
    return [store.read_person(text) for (text,) in await database.arun(call)]


async def ensure_operator(database: Database, name: str = "operator") -> Person | None:
    """The first person there is, an operator; None if there is someone already."""
    ((is_inhabited,),) = await database.arun(store.has_any())
    if is_inhabited:
        return None
    try:
        return await create(database, name, Role.OPERATOR)
    except DuplicatePerson:
        return None  # Of servers that start together, another was first.


def _role_of_person(role: str) -> Role:
    known = ensure_role(role)
    if known is Role.WORKER:
        raise InvalidOption("role", "cannot be worker for a person; create a token for a worker")
    return known


async def _not_found(database: Database, name: str, tenant_id: str | None) -> PersonNotFound:
    names = [known for (known,) in await database.arun(store.names(tenant_id))]
    close = difflib.get_close_matches(str(name), names, n=1)
    return PersonNotFound(str(name), close[0] if close else None)
