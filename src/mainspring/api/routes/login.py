"""The way in for browsers: a page that says what this is, logging in and out."""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from mainspring.api.auth import SESSION_COOKIE, ServerState, ensure_same_origin
from mainspring.api.pages import keep_session, root_of, show
from mainspring.domain.errors.access import Unauthenticated
from mainspring.services import tokens

page_router = APIRouter(include_in_schema=False)


@page_router.get("/")
async def front(request: Request) -> Response:
    """The start page."""
    server: ServerState = request.app.state.server
    root = escape(root_of(request))
    who = await _visitor(request, server)
    greeting = (
        f"<p>You are logged in as <strong>{escape(who)}</strong>.</p>"
        f'<form method="post" action="{root}/logout"><button>Log out</button></form>'
        if who
        else '<p class="note">You are not logged in. Get a login link with '
        f"<code>mainspring login-link</code>.</p>{_through_provider(request)}"
    )
    body = (
        "<p>Mainspring is running: background jobs and schedules on PostgreSQL.</p>"
        f"{greeting}"
        "<ul>"
        f'<li><a href="{root}/docs">REST API</a>: every operation, with examples '
        f'(<a href="{root}/api/v1/openapi.json">OpenAPI</a>)</li>'
        f'<li><a href="{root}/health">Health</a>: whether the database answers</li>'
        "</ul>"
    )
    return show("Mainspring", body)


@page_router.get("/health")
async def health(request: Request) -> Response:
    """Check whether the database answers."""
    server: ServerState = request.app.state.server
    await tokens.ping(server.database)
    return Response(b'{"status":"ok"}', media_type="application/json")


@page_router.get("/login")
async def confirm(request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Show a login button, so that a mail scanner that opens links does not use one up."""
    root = escape(root_of(request))
    by_link = (
        f'<form method="post" action="{root}/login">'
        f'<input type="hidden" name="code" value="{escape(code)}">'
        "<p><button>Log in</button></p></form>"
        '<p class="note">The link works once and expires after 15 minutes.</p>'
    )
    asking = '<p class="note">Get a login link with <code>mainspring login-link</code>.</p>'
    return show("Log in to Mainspring", (by_link if code else asking) + _through_provider(request))


def _through_provider(request: Request) -> str:
    server: ServerState = request.app.state.server
    if server.provider is None:
        return ""
    href = f"{escape(root_of(request))}/login/oidc"
    return f'<p><a href="{href}">Log in with {escape(server.provider.name)}</a></p>'


@page_router.post("/login")
async def log_in(request: Request) -> Response:
    """Exchange a login code for a session."""
    server: ServerState = request.app.state.server
    ensure_same_origin(request)
    code = _field(await request.body(), b"code")
    try:
        session = await tokens.log_in(server.visitors, code)
    except Unauthenticated as error:
        body = f"<p>{escape(str(error)).replace('`', '')}</p>"
        return show("This link does not work", body, 401)
    answer = RedirectResponse(f"{root_of(request)}/", 303)
    keep_session(answer, request, server.settings, text=session.text)
    return answer


@page_router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session here and in the database."""
    server: ServerState = request.app.state.server
    ensure_same_origin(request)
    if (text := request.cookies.get(SESSION_COOKIE)) is not None:
        await tokens.log_out(server.visitors, text)
    root = root_of(request)
    answer = RedirectResponse(f"{root}/", 303)
    answer.delete_cookie(SESSION_COOKIE, path=f"{root}/")
    return answer


async def _visitor(request: Request, server: ServerState) -> str | None:
    text = request.cookies.get(SESSION_COOKIE)
    if text is None:
        return None
    try:
        return (await tokens.authenticate(server.database, text)).actor
    except Unauthenticated:
        return None


def _field(body: bytes, name: bytes) -> str:
    """One field of a form; tokens hold nothing that a form would have to escape."""
    for pair in body[:1000].split(b"&"):
        key, _, value = pair.partition(b"=")
        if key == name:
            return value.decode("ascii", "replace")
    return ""
