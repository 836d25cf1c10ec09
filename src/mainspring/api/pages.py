"""The few pages that the server writes itself."""

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from mainspring.api.auth import SESSION_COOKIE
from mainspring.domain.access import tokens as token_rules
from mainspring.settings import Settings

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{head}<title>{title}</title>
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


def show(title: str, body: str, status: int = 200, *, head: str = "") -> HTMLResponse:
    """A page; what it is given is HTML already."""
    return HTMLResponse(_PAGE.format(title=title, body=body, head=head), status)


def root_of(request: Request) -> str:
    """The path that the server is mounted at."""
    return str(request.scope.get("root_path", ""))


def is_secure(request: Request, settings: Settings) -> bool:
    """Whether a browser comes here encrypted, so that it is to send its cookies in no other way."""
    known = settings.public_url or request.app.state.public_url or str(request.base_url)
    return str(known).startswith("https:")


def keep_session(answer: Response, request: Request, settings: Settings, *, text: str) -> None:
    """Have the browser show the session from now on."""
    answer.set_cookie(
        SESSION_COOKIE,
        text,
        max_age=int(token_rules.SESSION_LIFE.total_seconds()),
        path=f"{root_of(request)}/",
        secure=is_secure(request, settings),
        httponly=True,
        samesite="strict",
    )
