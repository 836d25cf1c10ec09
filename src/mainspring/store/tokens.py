"""Statements on tokens and logins."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.access.roles import Caller, Role
from mainspring.domain.access.tokens import Person, Token, TokenState
from mainspring.domain.types import TenantId
from mainspring.store.rows.records import read_record

_STATEMENTS = load("tokens")


class Maker(NamedTuple):
    """Who makes a token: whose it is therefore, as whom it votes, and when it ends at the latest.
    All None for whoever has the database's own credentials."""

    person_id: int | None = None
    person: str | None = None
    voter: str | None = None
    ends_by: datetime | None = None


_INSTANTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


async def create(
    session: Session,
    name: str,
    prefix: str,
    *,
    digest: bytes,
    role: Role,
    tenant_id: str | None,
    tenants: Sequence[str] | None,
    scopes: Sequence[str] | None,
    life: timedelta | None,
    maker: Maker,
) -> int | None:
    """Its id; None if the name is taken."""
    params = {
        "name": name,
        "prefix": prefix,
        "digest": digest,
        "role": role.value,
        "tenant_id": tenant_id,
        "tenants": None if tenants is None else list(tenants),
        "scopes": None if scopes is None else list(scopes),
        "life": life,
        **maker._asdict(),
    }
    row = await fetch_one(session, _STATEMENTS["create_token"].sql, params)
    return None if row is None else int(row[0])


async def get(session: Session, token_id: int) -> Token | None:
    row = await fetch_one(session, _STATEMENTS["get_token"].sql, {"token_id": token_id})
    return None if row is None else _token(row[0])


async def find_all(session: Session, name: str, tenant_id: str | None) -> list[Token]:
    """The newest of the name in the tenant, or in each; an operator's first."""
    params = {"name": name, "tenant_id": tenant_id}
    rows = await fetch_all(session, _STATEMENTS["find_tokens"].sql, params)
    return [_token(text) for (text,) in rows]


async def list_tokens(
    session: Session,
    tenant_id: str | None,
    *,
    after: str | None,
    after_id: int | None,
    limit: int,
    states: Sequence[TokenState],
    roles: Sequence[Role],
) -> list[Token]:
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "after_id": after_id,
        "limit": limit,
        "states": [str(state) for state in states] or None,
        "roles": [str(role) for role in roles] or None,
    }
    rows = await fetch_all(session, _STATEMENTS["list_tokens"].sql, params)
    return [_token(text) for (text,) in rows]


async def names(session: Session, tenant_id: str | None) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["token_names"].sql, {"tenant_id": tenant_id})
    return [name for (name,) in rows]


async def revoke(session: Session, token_id: int) -> None:
    await session.execute(_STATEMENTS["revoke_token"].sql, {"token_id": token_id})


async def find(session: Session, digest: bytes) -> Caller | None:
    """Whose it is; None if it lets nobody in."""
    row = await fetch_one(session, _STATEMENTS["find_token"].sql, {"digest": digest})
    return None if row is None else _caller(row)


async def why_not(session: Session, digest: bytes) -> str:
    """Why it lets nobody in."""
    ((reason,),) = await fetch_all(session, _STATEMENTS["why_no_bearer"].sql, {"digest": digest})
    return str(reason)


def enter(digest: bytes) -> Call:
    """Lets the bearer in for the rest of the transaction."""
    return Call(_STATEMENTS["enter"].sql, {"digest": digest})


async def act_as_owner(session: Session) -> None:
    """For the rest of a transaction in which a bearer was let in."""
    await session.execute(_STATEMENTS["act_as_owner"].sql)


async def open_to_app(session: Session) -> None:
    await session.execute(_STATEMENTS["open_to_app"].sql, {})


async def open_login(
    session: Session,
    person: Person,
    prefix: str,
    *,
    digest: bytes,
    life: timedelta,
    ends_by: datetime | None,
    is_link: bool,
) -> bool:
    """False if the person is disabled or gone."""
    params = {
        "person_id": person.person_id,
        "tenant_id": person.tenant_id,
        "prefix": prefix,
        "digest": digest,
        "life": life,
        "ends_by": ends_by,
        "is_link": is_link,
    }
    ((is_known,),) = await fetch_all(session, _STATEMENTS["open_login"].sql, params)
    return bool(is_known)


async def use_login(
    session: Session, login: bytes, prefix: str, *, digest: bytes, life: timedelta
) -> str | None:
    """Whose session it is; None if the login lets nobody in."""
    params = {"login": login, "prefix": prefix, "digest": digest, "life": life}
    ((person,),) = await fetch_all(session, _STATEMENTS["use_login"].sql, params)
    return None if person is None else str(person)


async def open_console(
    session: Session, name: str | None, prefix: str, *, digest: bytes, life: timedelta
) -> None:
    params = {"name": name, "prefix": prefix, "digest": digest, "life": life}
    await session.execute(_STATEMENTS["open_console"].sql, params)


async def renew_console(session: Session, digest: bytes, *, life: timedelta) -> str:
    """`renewed`, `revoked` or `pruned`."""
    params = {"digest": digest, "life": life}
    ((outcome,),) = await fetch_all(session, _STATEMENTS["renew_console"].sql, params)
    return str(outcome)


async def cookie_key(session: Session) -> bytes:
    ((key,),) = await fetch_all(session, _STATEMENTS["cookie_key"].sql, {})
    return bytes(key)


async def is_key_used(session: Session, digest: bytes) -> bool:
    """Of a login through a provider."""
    params = {"digest": digest}
    ((is_used,),) = await fetch_all(session, _STATEMENTS["is_login_key_used"].sql, params)
    return bool(is_used)


async def use_key(session: Session, digest: bytes, *, life: timedelta) -> bool:
    """False if it was used before."""
    params = {"digest": digest, "life": life}
    return await fetch_one(session, _STATEMENTS["use_login_key"].sql, params) is not None


async def log_out(session: Session, digest: bytes) -> None:
    """End a session or a console."""
    await session.execute(_STATEMENTS["log_out"].sql, {"digest": digest})


async def prune(session: Session) -> None:
    """Remove sessions and logins that have ended."""
    await session.execute(_STATEMENTS["prune_tokens"].sql)
    await session.execute(_STATEMENTS["prune_login_keys"].sql)


def _caller(row: tuple[Any, ...]) -> Caller:
    actor, role, tenant_id, scopes, *rest, tenants = row
    tenant = None if tenant_id is None else TenantId(tenant_id)
    served = None if tenants is None else tuple(tenants)
    limited = None if scopes is None else tuple(scopes)
    return replace(Caller(actor, Role(role), tenant, limited, *rest), tenants=served)


def _token(text: str) -> Token:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    for name in ("scopes", "tenants"):
        if facts[name] is not None:
            facts[name] = tuple(facts[name])
    facts["role"], facts["state"] = Role(facts["role"]), TokenState(facts["state"])
    return read_record(Token, facts)
