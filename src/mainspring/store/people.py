"""Statements on people."""

from datetime import UTC, datetime

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person
from mainspring.store.rows.records import read_record

_STATEMENTS = load("people")
_INSTANTS = ("created_at", "last_seen_at")


async def create(session: Session, name: str, role: Role, *, tenant_id: str | None) -> int | None:
    """The person's id; None if the name is taken."""
    params = {"name": name, "role": role.value, "tenant_id": tenant_id}
    row = await fetch_one(session, _STATEMENTS["create_person"].sql, params)
    return None if row is None else int(row[0])


async def get(session: Session, person_id: int) -> Person | None:
    row = await fetch_one(session, _STATEMENTS["get_person"].sql, {"person_id": person_id})
    return None if row is None else _person(row[0])


async def find_all(session: Session, name: str, tenant_id: str | None) -> list[Person]:
    """Of the name in the tenant, or in all; an operator first."""
    params = {"name": name, "tenant_id": tenant_id}
    rows = await fetch_all(session, _STATEMENTS["find_people"].sql, params)
    return [_person(text) for (text,) in rows]


async def list_people(
    session: Session,
    tenant_id: str | None,
    *,
    after: str | None,
    after_id: int | None,
    limit: int,
) -> list[Person]:
    params = {"tenant_id": tenant_id, "after": after, "after_id": after_id, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_people"].sql, params)
    return [_person(text) for (text,) in rows]


async def names(session: Session, tenant_id: str | None) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["person_names"].sql, {"tenant_id": tenant_id})
    return [name for (name,) in rows]


async def change(
    session: Session, person_id: int, *, role: Role | None, is_disabled: bool | None
) -> None:
    params = {
        "person_id": person_id,
        "role": None if role is None else role.value,
        "disabled": is_disabled,
    }
    await session.execute(_STATEMENTS["change_person"].sql, params)


async def delete(session: Session, person_id: int) -> None:
    await session.execute(_STATEMENTS["delete_person"].sql, {"person_id": person_id})


async def has_any(session: Session) -> bool:
    ((is_inhabited,),) = await fetch_all(session, _STATEMENTS["has_people"].sql, {})
    return bool(is_inhabited)


def _person(text: str) -> Person:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    facts["role"] = Role(facts["role"])
    return read_record(Person, facts)
