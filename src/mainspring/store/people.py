"""Statements on people."""

from datetime import UTC, datetime

import orjson

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person

_STATEMENTS = load("people")
_INSTANTS = ("created_at", "last_seen_at")


def create(name: str, role: Role, tenant_id: str | None) -> Call:
    """One row, or none if the name is taken."""
    params = {"name": name, "role": role.value, "tenant_id": tenant_id}
    return Call(_STATEMENTS["create_person"].sql, params)


def get(name: str, tenant_id: str | None) -> Call:
    """The row is (the person as text,), for `read_person`; no row if there is none."""
    return Call(_STATEMENTS["get_person"].sql, {"name": name, "tenant_id": tenant_id})


def list_people(tenant_id: str | None, *, after: str | None, limit: int) -> Call:
    """Each row is (the person as text,), for `read_person`."""
    params = {"tenant_id": tenant_id, "after": after, "limit": limit}
    return Call(_STATEMENTS["list_people"].sql, params)


def names(tenant_id: str | None) -> Call:
    """Each row is (name,)."""
    return Call(_STATEMENTS["person_names"].sql, {"tenant_id": tenant_id})


def change(
    name: str, tenant_id: str | None, *, role: Role | None, is_disabled: bool | None
) -> Call:
    """One row, or none if there is no such person."""
    params = {
        "name": name,
        "tenant_id": tenant_id,
        "role": None if role is None else role.value,
        "disabled": is_disabled,
    }
    return Call(_STATEMENTS["change_person"].sql, params)


def delete(name: str, tenant_id: str | None) -> Call:
    """One row, or none if there is no such person."""
    return Call(_STATEMENTS["delete_person"].sql, {"name": name, "tenant_id": tenant_id})


def has_any() -> Call:
    """The row is (whether there is anyone,)."""
    return Call(_STATEMENTS["has_people"].sql, {})


def read_person(text: str) -> Person:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    facts["role"] = Role(facts["role"])
    return Person(**facts)
