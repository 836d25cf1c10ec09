"""Where a request is received: who asks, for which tenant, and with which way to the database.

Whom a token stands for is remembered for a few seconds. Whether it still lets anyone in is asked
in every transaction, by the database, so a token that was revoked is refused at once.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from mainspring.api.errors import Refused
from mainspring.api.models.base import Name
from mainspring.api.responses import tag_of
from mainspring.api.routing import Query, Request
from mainspring.db.database import Database
from mainspring.db.request_sessions import RequestSession
from mainspring.db.tenant_sessions import TenantSession, TransactionSession
from mainspring.domain.access import tokens as token_rules
from mainspring.domain.access.roles import READ, WRITE, Caller, Role, ensure_allowed
from mainspring.domain.errors import InvalidOption, TenantNotFound
from mainspring.domain.errors.access import Unauthenticated
from mainspring.domain.health import Vitals
from mainspring.domain.processes import ProcessKind
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.services import tokens
from mainspring.settings import Settings
from mainspring.settings.rules import is_loopback
from mainspring.store import tokens as token_store

if TYPE_CHECKING:
    from mainspring.api.oidc import Provider
    from mainspring.api.streams import Hub
    from mainspring.services.claiming import ClaimOrders
    from mainspring.services.enqueueing import Enqueuer
    from mainspring.services.health import Health
    from mainspring.services.summaries import SummaryBook

SESSION_COOKIE = "mainspring_session"
EVERYWHERE = "*"
_FRESH_SECONDS = 5.0
_MOST_REMEMBERED = 10_000
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_NO_TENANT = frozenset({"definition", "limit", "tenant"})


class ServerState:
    """What all requests of a server share."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[bytes, tuple[float, Caller]] = {}
        self._cookie_key: bytes | None = None
        self._asking: dict[bytes, asyncio.Task[Caller]] = {}
        self._tenants: dict[str, float] = {}
        self._opening = asyncio.Lock()
        self._is_open = self._has_defaults = False
        self.is_stopping = False

    def vitals(self) -> Vitals:
        """For any thread."""
        return Vitals((), ("stopping",) if self.is_stopping else (), ProcessKind.SERVER)

    @property
    def settings(self) -> Settings:
        return self.database.settings

    # Imported on first use: a command without a server needs few of them.

    @cached_property
    def hub(self) -> "Hub":
        from mainspring.api.routes.streams import make_frame  # noqa: PLC0415
        from mainspring.api.streams import Hub  # noqa: PLC0415

        return Hub(self.database, make_frame)

    @cached_property
    def health(self) -> "Health":
        """Of this process, as far as its roles are made known."""
        from mainspring.services.health import DatabaseProbe, Health  # noqa: PLC0415

        probe = DatabaseProbe(lambda: self.database.url, use_pooler=self.settings.use_pooler)
        health = Health(probe)
        health.add(self.vitals)
        return health

    @cached_property
    def enqueuer(self) -> "Enqueuer":
        from mainspring.services.enqueueing import Enqueuer  # noqa: PLC0415

        return Enqueuer(self.settings)

    @cached_property
    def claim_orders(self) -> "ClaimOrders":
        from mainspring.services.claiming import ClaimOrders  # noqa: PLC0415

        return ClaimOrders()

    @cached_property
    def summaries(self) -> "SummaryBook":
        from mainspring.services.summaries import SummaryBook  # noqa: PLC0415

        return SummaryBook()

    @cached_property
    def provider(self) -> "Provider | None":
        from mainspring.api.oidc import Provider  # noqa: PLC0415

        return Provider(self.settings) if self.settings.oidc_issuer else None

    @cached_property
    def visitors(self) -> RequestSession:
        """For requests of whoever is not known yet."""
        return RequestSession(self.database, "visitors")

    async def cookie_key(self) -> bytes:
        """What cookies are signed with."""
        if self._cookie_key is None:
            self._cookie_key = await tokens.cookie_key(self.database)
        return self._cookie_key

    async def caller_of(
        self, text: str, digest: bytes, *, max_age: float = _FRESH_SECONDS
    ) -> Caller:
        """Whom the token stands for, as of so many seconds ago."""
        if not self._is_open:
            await self._open()
        since, caller = self._known.get(digest, (0.0, None))
        if caller is not None and time.monotonic() - since <= max_age:
            return caller
        # Whoever shows the same token meanwhile waits for the same answer.
        asking = self._asking.get(digest)
        if asking is None:
            asking = self._asking[digest] = asyncio.create_task(self._ask(text, digest))
        return await asyncio.shield(asking)

    async def _ask(self, text: str, digest: bytes) -> Caller:
        self._known.pop(digest, None)
        try:
            caller = await tokens.authenticate(self.database, text)
        finally:
            self._asking.pop(digest, None)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[digest] = (time.monotonic(), caller)
        return caller

    def identity_of(self, text: str) -> str | None:
        """The kind and id of whoever showed a token that was good a moment ago; None for any other.
        Looks nothing up."""
        known = self._known.get(token_rules.digest(text)) if token_rules.is_token(text) else None
        return None if known is None else known[1].identity

    async def ensure_tenant(self, tenant_id: str) -> None:
        """Raise TenantNotFound for a tenant that there is not; asks the database now and then."""
        if self._tenants.get(tenant_id, 0.0) < time.monotonic():
            from mainspring.services import tenants  # noqa: PLC0415 - for operators only

            self.forget_tenant(tenant_id)
            await tenants.ensure_known(self.database, tenant_id)
            self._tenants[tenant_id] = time.monotonic() + _FRESH_SECONDS

    def forget_tenant(self, tenant_id: str) -> None:
        """Ask for it the next time."""
        self._tenants.pop(tenant_id, None)

    async def install(self) -> None:
        """Make sure of the definitions that come with Mainspring, once: no worker may have
        started yet."""
        from mainspring.services import housekeeping  # noqa: PLC0415 - slow to import

        async with self._opening:
            if not self._has_defaults:
                await housekeeping.install(self.database, with_schedules=False)
                self._has_defaults = True

    async def _open(self) -> None:
        """Make sure of the role that requests run as, once."""
        async with self._opening:
            if not self._is_open:
                await tokens.open_to_app(self.database)
                self._is_open = True


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request that was let in: who asks, for which tenant, and what may be used for it."""

    server: ServerState
    caller: Caller
    listed_tenant: TenantId | None
    """The tenant that lists are of; None for an operator who asked for all of them."""
    session: TenantSession
    requests: RequestSession
    """Runs as the owner."""
    request: Request
    token: str

    @property
    def settings(self) -> Settings:
        return self.server.settings

    @property
    def tenant_id(self) -> TenantId:
        """The one tenant that is meant."""
        if self.listed_tenant is None:
            raise InvalidOption("tenant", f"can be {EVERYWHERE} only for lists; name one tenant")
        return self.listed_tenant

    @property
    def own_tenant(self) -> TenantId | None:
        """The tenant that people and the like are looked for in; None for an operator who asked for
        none."""
        if self.caller.tenant_id is None and "tenant" not in self.request.query_params:
            return None
        return self.listed_tenant

    def tenant_for(self, role: Role) -> TenantId | None:
        """The tenant of someone new. An operator has none, so who names one is told so."""
        if role is not Role.OPERATOR:
            return self.tenant_id
        return self.own_tenant if self.caller.tenant_id is None else None

    @property
    def creator(self) -> str | None:
        """Whose jobs alone are meant, for a member."""
        return self.caller.actor if self.caller.role is Role.MEMBER else None

    @property
    def searching(self) -> TenantSession:
        """A session for lists that may read many rows to find a few."""
        return TenantSession(self.requests.searching(), token_store.enter(self.digest))

    @property
    def digest(self) -> bytes:
        """By which the database knows the caller's token."""
        return token_rules.digest(self.token)

    async def ensure_same_rights(self, max_age: float) -> None:
        """Raise Unauthenticated if, as of so many seconds ago, the token let nobody in any more, or
        allowed something else than when the request came."""
        caller = await self.server.caller_of(self.token, self.digest, max_age=max_age)
        tokens.ensure_same_rights(caller, self.caller)

    @asynccontextmanager
    async def editing(self, noun: str, name: str) -> AsyncIterator[TransactionSession]:
        """One transaction, in which nobody else edits the same thing through the API."""
        from mainspring.services import idempotency  # noqa: PLC0415 - for changes only

        # What belongs to no tenant is the same thing whichever tenant the caller names.
        tenant_id = None if noun in _OF_NO_TENANT else self.tenant_id
        async with self.session.begin() as transaction:
            await idempotency.lock(transaction, noun, tenant_id=tenant_id, name=name)
            yield transaction

    def ensure_unchanged(self, facts: object, asked: str | None) -> None:
        """Refuse a change by someone who has seen another state than the present one; `asked` is
        the If-Match header."""
        if asked is None or asked.strip() == "*":
            return
        known = {each.strip().removeprefix("W/") for each in asked.split(",")}
        if tag_of(facts) not in known:
            raise Refused(
                HTTPStatus.PRECONDITION_FAILED,
                "precondition_failed",
                "it was changed since you last read it; fetch it again and retry",
            )


class Requires:
    """A dependency: lets in who may do this, and refuses everyone else. Without a noun, everyone
    with a token that is good."""

    def __init__(self, noun: str | None, verb: str) -> None:
        self.noun, self.verb = noun, verb

    async def __call__(
        self,
        request: Request,
        tenant: Annotated[
            Name | None,
            Query(
                description="Tenant to act on (operators only); * lists all tenants.",
            ),
        ] = None,
    ) -> RequestContext:
        server: ServerState = request.app.state.server
        text, is_session = _shown(request)
        digest = token_rules.digest(text)
        caller = await server.caller_of(text, digest)
        if is_session:
            ensure_same_origin(request)
        if self.noun is not None:
            ensure_allowed(caller, self.noun, self.verb)
        listed = _tenant(caller, tenant)
        if listed is not None and caller.tenant_id is None:
            await server.ensure_tenant(listed)
        requests = RequestSession(server.database, _group(caller))
        session = TenantSession(requests, token_store.enter(digest))
        return RequestContext(server, caller, listed, session, requests, request, text)


def _group(caller: Caller) -> str:
    """Whose share of the connections its requests use."""
    return f"{caller.role}s" if caller.tenant_id is None else f"tenant {caller.tenant_id}"


def _tenant(caller: Caller, asked: str | None) -> TenantId | None:
    if caller.tenant_id is None:
        if caller.tenants is not None and asked not in (None, EVERYWHERE, *caller.tenants):
            raise TenantNotFound(str(asked))
        if asked == EVERYWHERE:
            return None
        return TenantId(asked) if asked is not None else DEFAULT_TENANT
    if asked is not None and asked != caller.tenant_id:
        raise TenantNotFound(asked)
    return caller.tenant_id


def bearer_token(header: str) -> str:
    """The token in an Authorization header; empty if there is none."""
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


_MALFORMED = (
    "the Authorization header has no token after the word Bearer; a token begins with msk_ and has "
    "56 characters"
)


def _shown(request: Request) -> tuple[str, bool]:
    """The token of a request, and whether a browser sent it by itself."""
    header = request.headers.get("authorization")
    if header is not None:
        text = bearer_token(header)
        if not token_rules.is_token(text):
            raise Unauthenticated(_MALFORMED)
        return text, False
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None:
        raise Unauthenticated(
            # Without an example: whatever follows the word Bearer is redacted in every message.
            "missing token; send it in the header Authorization, after the word Bearer. An "
            "operator can create one with `mainspring tokens create`"
        )
    return cookie, True


def ensure_same_origin(request: Request) -> None:
    """Refuse a change that another site has a browser ask for."""
    if request.method in _SAFE_METHODS:
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_own = (
        site == "same-origin"
        if site is not None
        else origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    )
    if not is_own:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "cross_origin",
            "a session can be used only from the server's own pages",
        )


def known() -> Any:
    return Requires(None, READ)


def reading(noun: str) -> Any:
    return Requires(noun, READ)


def writing(noun: str) -> Any:
    return Requires(noun, WRITE)


def address_of(request: Request, settings: Settings) -> str:
    """Where people reach the server: the setting, or where it listens. What a request says of
    that in its Host header could be anyone's, so it counts only on this machine."""
    known = settings.public_url or request.app.state.public_url
    if known is None and is_loopback(request.url.hostname or ""):
        known = str(request.base_url)
    if known is None:
        raise Refused(
            HTTPStatus.CONFLICT,
            "public_url_missing",
            "links need the address of this server, which is not known here; set public_url",
        )
    return str(known).rstrip("/")
