"""/login/oidc: the way in through a provider, where the settings name one."""

import time
from html import escape
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from mainspring import telemetry
from mainspring.api.auth import ServerState, address_of
from mainspring.api.errors import Refused
from mainspring.api.oidc import Key, LoginFailed, Provider
from mainspring.api.pages import is_secure, keep_session, root_of, show
from mainspring.domain.access import tokens as token_rules
from mainspring.domain.errors import InvalidOption
from mainspring.services import tokens

page_router = APIRouter(include_in_schema=False)

OIDC_COOKIE = "mainspring_oidc"
_NOT_OURS = "this login was started in another browser, has expired or was already used"
Given = Annotated[str, Query(max_length=4000)]


def _provider(request: Request) -> Provider:
    server: ServerState = request.app.state.server
    if server.provider is None:
        said = "login through a provider is not configured; set oidc_issuer"
        raise Refused(HTTPStatus.NOT_FOUND, "no_such_path", said)
    return server.provider


def _callback(request: Request) -> str:
    server: ServerState = request.app.state.server
    return f"{address_of(request, server.settings)}/login/oidc/callback"


@page_router.get("/login/oidc")
async def start(request: Request) -> Response:
    """Send the browser to the provider."""
    provider = _provider(request)
    server: ServerState = request.app.state.server
    key = Key.make()
    try:
        entrance = await provider.entrance(key, _callback(request))
    except LoginFailed as error:
        return _failed(request, error)
    life = token_rules.LOGIN_LIFE.total_seconds()
    answer = RedirectResponse(entrance, 303)
    answer.set_cookie(
        OIDC_COOKIE,
        key.signed(await server.cookie_key(), expires_at=time.time() + life),
        max_age=int(life),
        path=f"{root_of(request)}/login/oidc",
        secure=is_secure(request, server.settings),
        httponly=True,
        # Lax, since it is from the provider's page that the browser comes back.
        samesite="lax",
    )
    return answer


@page_router.get("/login/oidc/callback")
async def finish(
    request: Request, state: Given = "", code: Given = "", error: Given = "", iss: Given = ""
) -> Response:
    """Log in the person that the provider names."""
    provider = _provider(request)
    server: ServerState = request.app.state.server
    key = Key.read(request.cookies.get(OIDC_COOKIE, ""), await server.cookie_key())
    try:
        if (
            key is None
            or not key.is_of(state)
            or await tokens.is_key_used(server.visitors, key.digest)
        ):
            raise LoginFailed(_NOT_OURS)
        if iss and not provider.is_called(iss):
            raise LoginFailed("the answer came from a different provider than the one asked")
        if error or not code:
            raise LoginFailed(
                f"the provider refused the login: {error[:200] or 'it returned no code'}"
            )
        person = await provider.person(key, code, callback=_callback(request))
        if not await tokens.use_key(server.visitors, key.digest):
            raise LoginFailed(_NOT_OURS)
        return await _enter(request, person)
    except LoginFailed as failure:
        return _failed(request, failure)


async def _enter(request: Request, person: str) -> Response:
    server: ServerState = request.app.state.server
    try:
        token_rules.ensure_name(person)
    except InvalidOption:
        return _unknown(request, person)
    opened = await tokens.open_provider_logins(server.visitors, person)
    if not opened:
        return _unknown(request, person)
    root = escape(root_of(request))
    if len(opened) > 1:
        forms = "".join(_choice(root, someone.tenant_id, code) for someone, code in opened)
        return _without_key(request, show("Choose a tenant", forms))
    ((_, code),) = opened
    session = await tokens.log_in(server.visitors, code)
    # Not a redirect: the way here began at the provider's page, and a browser shows a strict cookie
    # only to what was begun at our own.
    answer = show(
        "You are logged in",
        f'<p><a href="{root}/">Continue to Mainspring</a></p>',
        head=f'<meta http-equiv="refresh" content="0; url={root}/">\n',
    )
    keep_session(answer, request, server.settings, text=session.text)
    return _without_key(request, answer)


def _choice(root: str, tenant_id: str | None, code: str) -> str:
    """A button that logs in as the person of the name in one of several tenants."""
    where = f"tenant {tenant_id}" if tenant_id else "all tenants, as an operator"
    return (
        f'<form method="post" action="{root}/login">'
        f'<input type="hidden" name="code" value="{escape(code)}">'
        f"<p><button>Log in to {escape(where)}</button></p></form>"
    )


def _unknown(request: Request, person: str) -> Response:
    telemetry.event("login_refused", person=person)
    body = (
        f"<p>There is no person named <strong>{escape(person)}</strong> here, or their access is "
        "disabled.</p><p>Ask the operator of this server, or an admin of your tenant, to add "
        "you: "
        f"<code>mainspring people create {escape(person)}</code>.</p>"
    )
    return _without_key(request, show("Unknown person", body, 403))


def _failed(request: Request, error: LoginFailed) -> Response:
    telemetry.event("login_failed", error=str(error))
    root = escape(root_of(request))
    body = (
        f"<p>{escape(str(error))}</p>"
        f'<p><a href="{root}/login">Try again</a>, and contact the operator of this server if '
        "the problem persists.</p>"
    )
    return _without_key(request, show("Login failed", body, 401))


def _without_key(request: Request, answer: Response) -> Response:
    answer.delete_cookie(OIDC_COOKIE, path=f"{root_of(request)}/login/oidc")
    return answer
