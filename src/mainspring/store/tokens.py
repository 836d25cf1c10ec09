"""Statements on tokens, logins and sessions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.access.roles import Caller, Role
from mainspring.domain.access.tokens import Token, TokenState
from mainspring.domain.types import TenantId

_STATEMENTS = load("tokens")
_INSTANTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


def create(
    name: str,
    prefix: str,
    digest: bytes,
    *,
    role: Role,
    tenant_id: str | None,
    scopes: Sequence[str] | None,
    life: timedelta | None,
    person: str | None,
) -> Call:
    """One row, or none if the name is taken."""
    params = {
        "name": name,
        "prefix": prefix,
        "digest": digest,
        "role": role.value,
        "tenant_id": tenant_id,
        "scopes": None if scopes is None else list(scopes),
        "life": life,
        "person": person,
    }
    return Call(_STATEMENTS["create_token"].sql, params)


def get(name: str, tenant_id: str | None) -> Call:
    """The row is (the token as text,), for `read_token`; no row if there is none."""
    return Call(_STATEMENTS["get_token"].sql, {"name": name, "tenant_id": tenant_id})


def list_tokens(tenant_id: str | None, *, after: str | None, limit: int, with_ended: bool) -> Call:
    """Each row is (the token as text,), for `read_token`."""
    params = {"tenant_id": tenant_id, "after": after, "limit": limit, "all": with_ended}
    return Call(_STATEMENTS["list_tokens"].sql, params)


def names(tenant_id: str | None) -> Call:
    """Each row is (name,)."""
    return Call(_STATEMENTS["token_names"].sql, {"tenant_id": tenant_id})


def revoke(name: str, tenant_id: str | None) -> Call:
    """One row, or none if there was nothing to revoke."""
    return Call(_STATEMENTS["revoke_token"].sql, {"name": name, "tenant_id": tenant_id})


def find(digest: bytes) -> Call:
    """The row is for `read_caller`; no row if it lets nobody in."""
    return Call(_STATEMENTS["find_token"].sql, {"digest": digest})


def enter(digest: bytes) -> Call:
    """Lets the bearer in for the rest of the transaction."""
    return Call(_STATEMENTS["enter"].sql, {"digest": digest})


def open_to_app() -> Call:
    return Call(_STATEMENTS["open_to_app"].sql, {})


def create_login(name: str, prefix: str, digest: bytes, *, life: timedelta) -> Call:
    """One row, or none if there is no such person."""
    params = {"name": name, "prefix": prefix, "digest": digest, "life": life}
    return Call(_STATEMENTS["create_login"].sql, params)


def use_login(login: bytes, prefix: str, digest: bytes, *, life: timedelta) -> Call:
    """The row is (whose session it is,); no row if the login lets nobody in."""
    params = {"login": login, "prefix": prefix, "digest": digest, "life": life}
    return Call(_STATEMENTS["use_login"].sql, params)


def open_console(prefix: str, digest: bytes, *, life: timedelta) -> Call:
    """One row."""
    params = {"prefix": prefix, "digest": digest, "life": life}
    return Call(_STATEMENTS["open_console"].sql, params)


def keep_key(digest: bytes, *, life: timedelta) -> Call:
    """Of a login through a provider."""
    return Call(_STATEMENTS["keep_login_key"].sql, {"digest": digest, "life": life})


def use_key(digest: bytes) -> Call:
    """One row, or none if it is unknown, used or too old."""
    return Call(_STATEMENTS["use_login_key"].sql, {"digest": digest})


def end_session(digest: bytes) -> Call:
    return Call(_STATEMENTS["end_session"].sql, {"digest": digest})


async def prune(connection: AsyncConnection[Any]) -> None:
    """Remove sessions and logins that have ended."""
    await connection.execute(_STATEMENTS["prune_tokens"].sql)
    await connection.execute(_STATEMENTS["prune_login_keys"].sql)


def read_caller(row: tuple[Any, ...]) -> Caller:
    actor, role, tenant_id, scopes, _ = row
    tenant = None if tenant_id is None else TenantId(tenant_id)
    return Caller(actor, Role(role), tenant, None if scopes is None else tuple(scopes))


def read_token(text: str) -> Token:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    scopes = facts.pop("scopes")
    facts["role"], facts["state"] = Role(facts["role"]), TokenState(facts["state"])
    return Token(**facts, scopes=None if scopes is None else tuple(scopes))
