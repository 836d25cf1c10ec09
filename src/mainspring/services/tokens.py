"""Use cases of tokens: make one, find who shows one, take one back; and logins."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from mainspring.db import migrate
from mainspring.db.database import Database
from mainspring.db.sessions import Session
from mainspring.db.sql_errors import translated
from mainspring.domain.access import tokens as rules
from mainspring.domain.access.grants import (
    ensure_may_create_token,
    ensure_may_log_in_as,
    ensure_may_serve,
)
from mainspring.domain.access.names import the_one
from mainspring.domain.access.roles import (
    Caller,
    Role,
    ensure_role,
    ensure_scopes,
    ensure_tenant_of,
    ensure_tenants_of,
)
from mainspring.domain.access.tokens import Person, Token, TokenState
from mainspring.domain.errors.access import (
    DuplicateToken,
    PersonNotFound,
    TokenNotFound,
    Unauthenticated,
)
from mainspring.domain.filters import Several, words
from mainspring.domain.suggestions import closest
from mainspring.services import people
from mainspring.services import tenants as tenant_services
from mainspring.store import tokens as store
from mainspring.store.tokens import Maker


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
    tenants: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    life: timedelta | None = None,
    person: str | None = None,
    by: Caller | None = None,
) -> NewToken:
    """`by` is who asks, if anyone but the owner of the database does; then it may no more than that
    caller, and is that caller's. `person` is whose it is otherwise, if anyone's. With `tenants`, or
    with `*` in it, the token is a worker's that serves these in place of one tenant."""
    rules.ensure_name(name)
    known, chosen = ensure_role(role), ensure_scopes(scopes)
    served = None
    if tenants is None:
        ensure_tenant_of(known, tenant_id)
    else:
        served = await _served(session, known, tenants, by=by)
        tenant_id = None
    rules.ensure_life(life)
    if by is not None:
        ensure_may_create_token(by, known, scopes=chosen, life=life)
    text = _spell()
    token_id = await store.create(
        session,
        name,
        rules.prefix(text),
        digest=rules.digest(text),
        role=known,
        tenant_id=tenant_id,
        tenants=served,
        scopes=chosen,
        life=life,
        maker=_maker(by) if person is None else await _owner(session, person, tenant_id),
    )
    if token_id is None:
        raise DuplicateToken(name)
    return NewToken(text, await _get(session, token_id, name))


async def _served(
    session: Session, role: Role, tenants: Sequence[str], *, by: Caller | None
) -> tuple[str, ...] | None:
    served = ensure_tenants_of(role, tenants)
    if by is not None:
        ensure_may_serve(by)
    for tenant_id in served or ():
        await tenant_services.ensure_known(session, tenant_id)
    return served


def _maker(by: Caller | None) -> Maker:
    """Whoever has the database's own credentials makes tokens that are nobody's."""
    if by is None or by.kind == "console":
        return Maker()
    voter = by.voter if by.person_id is None else None
    return Maker(by.person_id, by.person, voter, by.ends_by)


async def _owner(session: Session, person: str, tenant_id: str | None) -> Maker:
    owner = await people.get(session, person, tenant_id)
    return Maker(owner.person_id, owner.name)


async def get(session: Session, name: str, tenant_id: str | None = None) -> Token:
    """Without a tenant, an operator's token of the name, or that of the only tenant with one."""
    token = the_one(await store.find_all(session, name, tenant_id))
    if token is None:
        known = await store.names(session, tenant_id)
        raise TokenNotFound(str(name), closest(str(name), known))
    return token


async def _get(session: Session, token_id: int, name: str) -> Token:
    token = await store.get(session, token_id)
    if token is None:
        raise TokenNotFound(name)
    return token


async def list_tokens(
    session: Session,
    tenant_id: str | None = None,
    *,
    after: str | None = None,
    after_id: int | None = None,
    limit: int = 100,
    state: Several[str] = TokenState.ACTIVE,
    role: Several[str] = None,
) -> list[Token]:
    """By name, after a name, or after one token of a name; in any state if none is given."""
    return await store.list_tokens(
        session,
        tenant_id,
        after=after,
        after_id=after_id,
        limit=limit,
        states=words("state", state, TokenState),
        roles=words("role", role, Role),
    )


async def revoke(session: Session, name: str, tenant_id: str | None = None) -> Token:
    """From the next request on nobody is let in by it; one that was revoked stays so."""
    token = await get(session, name, tenant_id)
    await store.revoke(session, token.token_id)
    return await _get(session, token.token_id, name)


async def authenticate(session: Session, text: str) -> Caller:
    """Who shows the token."""
    if not rules.is_token(text):
        raise Unauthenticated("the token is unknown, expired or revoked")
    caller = await store.find(session, rules.digest(text))
    if caller is None:
        raise Unauthenticated(await store.why_not(session, rules.digest(text)))
    return caller


async def authenticate_again(session: Session, text: str, known: Caller) -> None:
    """Raise Unauthenticated unless whoever showed the token before may still do the same."""
    ensure_same_rights(await authenticate(session, text), known)


def ensure_same_rights(caller: Caller, known: Caller) -> None:
    if caller.rights != known.rights:
        raise Unauthenticated("the token's role or scopes have changed; send the request again")


async def open_login(
    session: Session,
    name: str,
    tenant_id: str | None = None,
    *,
    by: Caller | None = None,
) -> str:
    """A text that gets the person a session, once and soon. `by` is who asks, if anyone but the
    owner of the database does."""
    person = await people.get(session, name, tenant_id)
    if by is not None:
        ensure_may_log_in_as(by, person.role)
    text = await _open_login(session, person, ends_by=None if by is None else by.ends_by)
    if text is None:
        raise PersonNotFound(name)
    return text


async def open_provider_logins(session: Session, name: str) -> list[tuple[Person, str]]:
    """The same for everyone of a name that a provider vouches for: one in each tenant."""
    opened = [
        (person, await _open_login(session, person, is_link=False))
        for person in await people.find_all(session, name)
    ]
    return [(person, text) for person, text in opened if text is not None]


async def _open_login(
    session: Session, person: Person, *, ends_by: datetime | None = None, is_link: bool = True
) -> str | None:
    """None if the person is disabled."""
    text = _spell()
    is_known = await store.open_login(
        session,
        person,
        rules.prefix(text),
        digest=rules.digest(text),
        life=rules.LOGIN_LIFE,
        ends_by=ends_by,
        is_link=is_link,
    )
    return text if is_known else None


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


async def open_console(
    session: Session, name: str | None = None, life: timedelta = rules.CONSOLE_LIFE
) -> str:
    """A text that lets a command in that has the database's own credentials; `log_out` ends it.
    One with a name is listed among the tokens."""
    text = _spell()
    digest = rules.digest(text)
    await store.open_console(session, name, rules.prefix(text), digest=digest, life=life)
    return text


async def renew_console(session: Session, text: str, life: timedelta) -> str:
    """`renewed`; `revoked` if someone has taken it back; `pruned` if it had expired."""
    return await store.renew_console(session, rules.digest(text), life=life)


async def cookie_key(session: Session) -> bytes:
    """What cookies are signed with."""
    return await store.cookie_key(session)


async def is_key_used(session: Session, digest: bytes) -> bool:
    """Whether a login through a provider was completed before."""
    return await store.is_key_used(session, digest)


async def use_key(session: Session, digest: bytes) -> bool:
    """Complete a login through a provider; false if it was completed before."""
    return await store.use_key(session, digest, life=rules.LOGIN_LIFE)


async def log_out(session: Session, text: str) -> None:
    """End a session or a console."""
    await store.log_out(session, rules.digest(text))


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
