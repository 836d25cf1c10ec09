"""Statements on tokens, logins and sessions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.access.roles import Caller, Role
from mainspring.domain.access.tokens import Token, TokenState
from mainspring.domain.types import TenantId

_STATEMENTS = load("tokens")
_INSTANTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


async def create(
    session: Session,
    name: str,
    prefix: str,
    *,
    digest: bytes,
    role: Role,
    tenant_id: str | None,
    scopes: Sequence[str] | None,
    life: timedelta | None,
    person: str | None,
) -> bool:
    """False if the name is taken."""
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
    return await fetch_one(session, _STATEMENTS["create_token"].sql, params) is not None


async def get(session: Session, name: str, tenant_id: str | None) -> Token | None:
    params = {"name": name, "tenant_id": tenant_id}
    row = await fetch_one(session, _STATEMENTS["get_token"].sql, params)
    return None if row is None else _token(row[0])


async def list_tokens(
    session: Session, tenant_id: str | None, *, after: str | None, limit: int, with_ended: bool
) -> list[Token]:
    params = {"tenant_id": tenant_id, "after": after, "limit": limit, "all": with_ended}
    rows = await fetch_all(session, _STATEMENTS["list_tokens"].sql, params)
    return [_token(text) for (text,) in rows]


async def names(session: Session, tenant_id: str | None) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["token_names"].sql, {"tenant_id": tenant_id})
    return [name for (name,) in rows]


async def revoke(session: Session, name: str, tenant_id: str | None) -> bool:
    """False if there was nothing to revoke."""
    params = {"name": name, "tenant_id": tenant_id}
    return await fetch_one(session, _STATEMENTS["revoke_token"].sql, params) is not None


async def find(session: Session, digest: bytes) -> Caller | None:
    """Whose it is; None if it lets nobody in."""
    row = await fetch_one(session, _STATEMENTS["find_token"].sql, {"digest": digest})
    return None if row is None else _caller(row)


def enter(digest: bytes) -> Call:
    """Lets the bearer in for the rest of the transaction."""
    return Call(_STATEMENTS["enter"].sql, {"digest": digest})


async def open_to_app(session: Session) -> None:
    await session.execute(_STATEMENTS["open_to_app"].sql, {})


async def create_login(
    session: Session, name: str, prefix: str, *, digest: bytes, life: timedelta
) -> bool:
    """False if there is no such person."""
    params = {"name": name, "prefix": prefix, "digest": digest, "life": life}
    return await fetch_one(session, _STATEMENTS["create_login"].sql, params) is not None


async def use_login(
    session: Session, login: bytes, prefix: str, *, digest: bytes, life: timedelta
) -> str | None:
    """Whose session it is; None if the login lets nobody in."""
    params = {"login": login, "prefix": prefix, "digest": digest, "life": life}
    row = await fetch_one(session, _STATEMENTS["use_login"].sql, params)
    return None if row is None else row[0]


async def open_console(session: Session, prefix: str, digest: bytes, *, life: timedelta) -> None:
    params = {"prefix": prefix, "digest": digest, "life": life}
    await session.execute(_STATEMENTS["open_console"].sql, params)


async def keep_key(session: Session, digest: bytes, *, life: timedelta) -> None:
    """Of a login through a provider."""
    params = {"digest": digest, "life": life}
    await session.execute(_STATEMENTS["keep_login_key"].sql, params)


async def use_key(session: Session, digest: bytes) -> bool:
    """False if it is unknown, used or too old."""
    params = {"digest": digest}
    return await fetch_one(session, _STATEMENTS["use_login_key"].sql, params) is not None


async def end_session(session: Session, digest: bytes) -> None:
    await session.execute(_STATEMENTS["end_session"].sql, {"digest": digest})


async def prune(session: Session) -> None:
    """Remove sessions and logins that have ended."""
    await session.execute(_STATEMENTS["prune_tokens"].sql)
    await session.execute(_STATEMENTS["prune_login_keys"].sql)


def _caller(row: tuple[Any, ...]) -> Caller:
    actor, role, tenant_id, scopes, _ = row
    tenant = None if tenant_id is None else TenantId(tenant_id)
    return Caller(actor, Role(role), tenant, None if scopes is None else tuple(scopes))


def _token(text: str) -> Token:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    scopes = facts.pop("scopes")
    facts["role"], facts["state"] = Role(facts["role"]), TokenState(facts["state"])
    return Token(**facts, scopes=None if scopes is None else tuple(scopes))
