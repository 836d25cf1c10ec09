"""The way in for browsers: a page that says what this is, logging in and out."""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from mainspring.api.desks import SESSION_COOKIE, Reception, ensure_same_origin
from mainspring.domain import tokens as token_rules
from mainspring.domain.access_errors import Unauthenticated
from mainspring.services import tokens

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto;
       padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }}
code {{ font-size: .95em; }}
.note {{ opacity: .7; }}
</style>
<h1>{title}</h1>
{body}
</html>
"""


@router.get("/")
async def front(request: Request) -> Response:
    """What this is, and where its parts are."""
    reception: Reception = request.app.state.reception
    root = escape(request.scope.get("root_path", ""))
    who = await _visitor(request, reception)
    greeting = (
        f"<p>You are logged in as <strong>{escape(who)}</strong>.</p>"
        f'<form method="post" action="{root}/logout"><button>Log out</button></form>'
        if who
        else '<p class="note">You are not logged in. A link for it comes from '
        "<code>mainspring login-link</code>.</p>"
    )
    body = (
        "<p>Mainspring is running: background jobs and schedules on PostgreSQL.</p>"
        f"{greeting}"
        "<ul>"
        f'<li><a href="{root}/api/v1/openapi.json">The API</a>, described for programs</li>'
        f'<li><a href="{root}/health">Health</a>: whether the database answers</li>'
        "</ul>"
    )
    return HTMLResponse(_PAGE.format(title="Mainspring", body=body))


@router.get("/health")
async def health(request: Request) -> Response:
    """Whether the database answers."""
    reception: Reception = request.app.state.reception
    await tokens.ping(reception.database)
    return Response(b'{"status":"ok"}', media_type="application/json")


@router.get("/login")
async def confirm(request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """A button: what only looks at links, such as a mail scanner, must not use one up."""
    root = escape(request.scope.get("root_path", ""))
    body = (
        f'<form method="post" action="{root}/login">'
        f'<input type="hidden" name="code" value="{escape(code)}">'
        "<p><button>Log in</button></p></form>"
        '<p class="note">The link works once, for a quarter of an hour.</p>'
    )
    return HTMLResponse(_PAGE.format(title="Log in to Mainspring", body=body))


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Trade a login for a session."""
    reception: Reception = request.app.state.reception
    ensure_same_origin(request)
    code = _field(await request.body(), b"code")
    try:
        session = await tokens.log_in(reception.database, code)
    except Unauthenticated as error:
        body = f"<p>{escape(str(error)).replace('`', '')}</p>"
        return HTMLResponse(_PAGE.format(title="This link does not work", body=body), 401)
    root = request.scope.get("root_path", "")
    answer = RedirectResponse(f"{root}/", 303)
    answer.set_cookie(
        SESSION_COOKIE,
        session.text,
        max_age=int(token_rules.SESSION_LIFE.total_seconds()),
        path=f"{root}/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session here and in the database."""
    reception: Reception = request.app.state.reception
    ensure_same_origin(request)
    if (text := request.cookies.get(SESSION_COOKIE)) is not None:
        await tokens.log_out(reception.database, text)
    root = request.scope.get("root_path", "")
    answer = RedirectResponse(f"{root}/", 303)
    answer.delete_cookie(SESSION_COOKIE, path=f"{root}/")
    return answer


async def _visitor(request: Request, reception: Reception) -> str | None:
    text = request.cookies.get(SESSION_COOKIE)
    if text is None:
        return None
    try:
        return (await tokens.authenticate(reception.database, text)).actor
    except Unauthenticated:
        return None


def _field(body: bytes, name: bytes) -> str:
    """One field of a form; tokens hold nothing that a form would have to escape."""
    for pair in body[:1000].split(b"&"):
        key, _, value = pair.partition(b"=")
        if key == name:
            return value.decode("ascii", "replace")
    return ""
