"""/docs: the reference of the API, for people."""

import asyncio
from functools import lru_cache
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mainspring.api.pages import root_of

page_router = APIRouter(include_in_schema=False)

# All it needs is served from here; nothing else is loaded, framed or sent.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


@page_router.get("/docs")
async def reference(request: Request) -> Response:
    """The page."""
    root = root_of(request)
    url, settings = request.url, request.app.state.server.settings
    base = (settings.public_url or f"{url.scheme}://{url.netloc}{root}").rstrip("/")
    headers = {"Content-Security-Policy": _POLICY}
    # In a thread: the page takes most of a second to make, and others wait for the event loop.
    page = await asyncio.to_thread(_page, request.app, root, base)
    return HTMLResponse(page, headers=headers)


@page_router.get("/docs/reference.css")
async def style() -> Response:
    """The style of the page."""
    return Response(_read("reference.css"), media_type="text/css")


@page_router.get("/docs/reference.js")
async def script() -> Response:
    """The script of the page."""
    return Response(_read("reference.js"), media_type="text/javascript")


@lru_cache(maxsize=8)
def _page(app: Any, root: str, base: str) -> str:
    from mainspring.api.reference.page import show_page  # noqa: PLC0415 - only for the page

    return show_page(app.openapi(), root=root, base=base)


@lru_cache
def _read(name: str) -> bytes:
    return resources.files("mainspring.api.reference").joinpath(name).read_bytes()
