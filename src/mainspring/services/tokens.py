"""Use cases of tokens: make one, find who shows one, take one back; and logins."""

import difflib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from mainspring.db import migrate
from mainspring.db.database import Database
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
from mainspring.store import tokens as store


class NewToken(NamedTuple):
    """The text of a token, which nobody can be shown again, and the token."""

    text: str
    token: Token


class Session(NamedTuple):
    """The text that a browser shows, and whose it is."""

    text: str
    person: str


async def create(
    database: Database,
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
    call = store.create(
        name,
        rules.prefix(text),
        rules.digest(text),
        role=known,
        tenant_id=tenant_id,
        scopes=ensure_scopes(scopes),
        life=life,
        person=person,
    )
    if not await database.arun(call):
        raise DuplicateToken(name)
    return NewToken(text, await get(database, name, tenant_id))


async def get(database: Database, name: str, tenant_id: str | None = None) -> Token:
    rows = await database.arun(store.get(name, tenant_id))
    if not rows:
        raise await _not_found(database, name, tenant_id)
    return store.read_token(rows[0][0])


async def list_tokens(
    database: Database,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    limit: int = 100,
    with_ended: bool = False,
) -> list[Token]:
    call = store.list_tokens(tenant_id, after=after, limit=limit, with_ended=with_ended)
    return [store.read_token(text) for (text,) in await database.arun(call)]


async def revoke(database: Database, name: str, tenant_id: str | None = None) -> Token:
    """From the next request on nobody is let in by it; one that was revoked stays so."""
    await database.arun(store.revoke(name, tenant_id))
    return await get(database, name, tenant_id)


async def authenticate(database: Database, text: str) -> Caller:
    """Who shows the token."""
    rows = await database.arun(store.find(rules.digest(text))) if rules.is_token(text) else []
    if not rows:
        raise Unauthenticated("the token is unknown, expired or revoked")
    return store.read_caller(rows[0])


async def open_login(database: Database, person: str) -> str:
    """A text that gets the person a session, once and soon."""
    text = _spell()
    call = store.create_login(person, rules.prefix(text), rules.digest(text), life=rules.LOGIN_LIFE)
    if not await database.arun(call):
        raise PersonNotFound(person)
    return text


async def log_in(database: Database, login: str) -> Session:
    text = _spell()
    rows = []
    if rules.is_token(login):
        call = store.use_login(
            rules.digest(login), rules.prefix(text), rules.digest(text), life=rules.SESSION_LIFE
        )
        rows = await database.arun(call)
    if not rows:
        raise Unauthenticated(
            "the login link is invalid, expired or already used; get a new one, for example with "
            "`mainspring login-link`"
        )
    return Session(text, rows[0][0])


async def open_console(database: Database, life: timedelta = rules.CONSOLE_LIFE) -> str:
    """A text that lets a command in that has the database's own credentials; `log_out` ends it."""
    text = _spell()
    await database.arun(store.open_console(rules.prefix(text), rules.digest(text), life=life))
    return text


async def keep_key(database: Database, digest: bytes) -> None:
    """Note that a login through a provider was begun."""
    await database.arun(store.keep_key(digest, life=rules.LOGIN_LIFE))


async def use_key(database: Database, digest: bytes) -> bool:
    """Whether it was begun here, a short while ago, and not ended before."""
    return bool(await database.arun(store.use_key(digest)))


async def log_out(database: Database, text: str) -> None:
    await database.arun(store.end_session(rules.digest(text)))


async def ping(database: Database) -> None:
    """Raise unless the database answers, and is at this program's migration."""
    with translated():
        async with (await database.async_pool()).connection() as connection:
            await migrate.check(connection)


async def open_to_app(database: Database) -> None:
    """Make sure of the role that requests run as; raises AppRoleMissing, with what to do."""
    await database.arun(store.open_to_app())


def _spell() -> str:
    return rules.spell(secrets.token_bytes(rules.BYTES))


async def _not_found(database: Database, name: str, tenant_id: str | None) -> TokenNotFound:
    names = [known for (known,) in await database.arun(store.names(tenant_id))]
    close = difflib.get_close_matches(str(name), names, n=1)
    return TokenNotFound(str(name), close[0] if close else None)
