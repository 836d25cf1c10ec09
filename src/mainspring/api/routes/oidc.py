"""/login/oidc: the way in through a provider, where the settings name one."""

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
from mainspring.domain.errors.access import PersonNotFound
from mainspring.services import tokens

page_router = APIRouter(include_in_schema=False)

OIDC_COOKIE = "mainspring_oidc"
Given = Annotated[str, Query(max_length=4000)]


def _provider(request: Request) -> Provider:
    server: ServerState = request.app.state.server
    if server.provider is None:
        said = "nobody logs in through a provider here; oidc_issuer names none"
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
    await tokens.keep_key(server.database, key.digest)
    answer = RedirectResponse(entrance, 303)
    answer.set_cookie(
        OIDC_COOKIE,
        key.text,
        max_age=int(token_rules.LOGIN_LIFE.total_seconds()),
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
    """Let in whom the provider names."""
    provider = _provider(request)
    server: ServerState = request.app.state.server
    key = Key(request.cookies.get(OIDC_COOKIE, ""))
    is_ours = key.is_of(state) and await tokens.use_key(server.database, key.digest)
    try:
        if not is_ours:
            raise LoginFailed("this login was not begun in this browser, is too old, or was used")
        if iss and not provider.is_called(iss):
            raise LoginFailed("another provider has answered than the one that was asked")
        if error or not code:
            raise LoginFailed(f"the provider let nobody in: {error[:200] or 'it gave no code'}")
        person = await provider.person(key, code, callback=_callback(request))
        return await _enter(request, person)
    except LoginFailed as failure:
        return _failed(request, failure)


async def _enter(request: Request, person: str) -> Response:
    server: ServerState = request.app.state.server
    try:
        token_rules.ensure_name(person)
        session = await tokens.log_in(
            server.database, await tokens.open_login(server.database, person)
        )
    except (PersonNotFound, InvalidOption):
        return _unknown(request, person)
    root = escape(root_of(request))
    # Not a redirect: the way here began at the provider's page, and a browser shows a strict cookie
    # only to what was begun at our own.
    answer = show(
        "You are logged in",
        f'<p><a href="{root}/">Go on to Mainspring</a></p>',
        head=f'<meta http-equiv="refresh" content="0; url={root}/">\n',
    )
    keep_session(answer, request, server.settings, text=session.text)
    return _without_key(request, answer)


def _unknown(request: Request, person: str) -> Response:
    telemetry.event("login_refused", person=person)
    body = (
        f"<p>Nobody here is called <strong>{escape(person)}</strong>, or that person may not come "
        "in.</p><p>Ask whoever runs this Mainspring, or an admin of your tenant, to add you: "
        f"<code>mainspring people create {escape(person)}</code>.</p>"
    )
    return _without_key(request, show("You are not known here", body, 403))


def _failed(request: Request, error: LoginFailed) -> Response:
    telemetry.event("login_failed", error=str(error))
    root = escape(root_of(request))
    body = (
        f"<p>{escape(str(error))}</p>"
        f'<p><a href="{root}/login">Try again</a>, and ask whoever runs this Mainspring if it '
        "stays so.</p>"
    )
    return _without_key(request, show("Logging in did not work", body, 401))


def _without_key(request: Request, answer: Response) -> Response:
    answer.delete_cookie(OIDC_COOKIE, path=f"{root_of(request)}/login/oidc")
    return answer
