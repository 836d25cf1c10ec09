"""Use cases of tokens: make one, find who shows one, take one back; and logins."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from mainspring.db import migrate
from mainspring.db.database import Database
from mainspring.db.sessions import Session
from mainspring.db.sql_errors import translated
from mainspring.domain.access import tokens as rules
from mainspring.domain.access.roles import (
    Caller,
    ensure_may_grant,
    ensure_role,
    ensure_scopes,
    ensure_tenant_of,
)
from mainspring.domain.access.tokens import Token
from mainspring.domain.errors.access import (
    DuplicateToken,
    PersonNotFound,
    TokenNotFound,
    Unauthenticated,
)
from mainspring.domain.suggestions import closest
from mainspring.store import tokens as store


class NewToken(NamedTuple):
    """The text of a token, which nobody can be shown again, and the token."""

    text: str
    token: Token


class BrowserSession(NamedTuple):
    """The text that a browser shows, and whose it is."""

    text: str
    person: str


async def create(
    session: Session,
    name: str,
    role: str,
    *,
    tenant_id: str | None = None,
    scopes: Sequence[str] | None = None,
    life: timedelta | None = None,
    person: str | None = None,
    by: Caller | None = None,
) -> NewToken:
    """`by` is who asks, if anyone but the owner of the database does."""
    rules.ensure_name(name)
    known = ensure_role(role)
    ensure_tenant_of(known, tenant_id)
    rules.ensure_life(life)
    if by is not None:
        ensure_may_grant(by, known)
    text = _spell()
    is_created = await store.create(
        session,
        name,
        rules.prefix(text),
        digest=rules.digest(text),
        role=known,
        tenant_id=tenant_id,
        scopes=ensure_scopes(scopes),
        life=life,
        person=person,
    )
    if not is_created:
        raise DuplicateToken(name)
    return NewToken(text, await get(session, name, tenant_id))


async def get(session: Session, name: str, tenant_id: str | None = None) -> Token:
    token = await store.get(session, name, tenant_id)
    if token is None:
        raise await _not_found(session, name, tenant_id)
    return token


async def list_tokens(
    session: Session,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    limit: int = 100,
    with_ended: bool = False,
) -> list[Token]:
    return await store.list_tokens(
        session, tenant_id, after=after, limit=limit, with_ended=with_ended
    )


async def revoke(session: Session, name: str, tenant_id: str | None = None) -> Token:
    """From the next request on nobody is let in by it; one that was revoked stays so."""
    await store.revoke(session, name, tenant_id)
    return await get(session, name, tenant_id)


async def authenticate(session: Session, text: str) -> Caller:
    """Who shows the token."""
    caller = await store.find(session, rules.digest(text)) if rules.is_token(text) else None
    if caller is None:
        raise Unauthenticated("the token is unknown, expired or revoked")
    return caller


async def open_login(session: Session, person: str) -> str:
    """A text that gets the person a session, once and soon."""
    text = _spell()
    is_known = await store.create_login(
        session, person, rules.prefix(text), digest=rules.digest(text), life=rules.LOGIN_LIFE
    )
    if not is_known:
        raise PersonNotFound(person)
    return text


async def log_in(session: Session, login: str) -> BrowserSession:
    text = _spell()
    person = None
    if rules.is_token(login):
        person = await store.use_login(
            session,
            rules.digest(login),
            rules.prefix(text),
            digest=rules.digest(text),
            life=rules.SESSION_LIFE,
        )
    if person is None:
        raise Unauthenticated(
            "the login link is invalid, expired or already used; get a new one, for example with "
            "`mainspring login-link`"
        )
    return BrowserSession(text, person)


async def open_console(session: Session, life: timedelta = rules.CONSOLE_LIFE) -> str:
    """A text that lets a command in that has the database's own credentials; `log_out` ends it."""
    text = _spell()
    await store.open_console(session, rules.prefix(text), rules.digest(text), life=life)
    return text


async def keep_key(session: Session, digest: bytes) -> None:
    """Note that a login through a provider was begun."""
    await store.keep_key(session, digest, life=rules.LOGIN_LIFE)


async def use_key(session: Session, digest: bytes) -> bool:
    """Whether it was begun here, a short while ago, and not ended before."""
    return await store.use_key(session, digest)


async def log_out(session: Session, text: str) -> None:
    await store.end_session(session, rules.digest(text))


async def ping(database: Database) -> None:
    """Raise unless the database answers, and is at this program's migration."""
    with translated():
        async with (await database.async_pool()).connection() as connection:
            await migrate.check(connection)


async def open_to_app(session: Session) -> None:
    """Make sure of the role that requests run as; raises AppRoleMissing, with what to do."""
    await store.open_to_app(session)


def _spell() -> str:
    return rules.spell(secrets.token_bytes(rules.BYTES))


async def _not_found(session: Session, name: str, tenant_id: str | None) -> TokenNotFound:
    known = await store.names(session, tenant_id)
    return TokenNotFound(str(name), closest(str(name), known))
