"""The API as an ASGI application, on its own or mounted in another."""

import asyncio
from functools import cache, lru_cache
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.routing import BaseRoute
from starlette.types import Lifespan

from mainspring.api import routes
from mainspring.api.asgi import install_errors, make_router
from mainspring.api.auth import ServerState
from mainspring.api.hosts import HostMiddleware
from mainspring.api.middleware import RequestMiddleware
from mainspring.api.unknown_paths import PREFIX
from mainspring.db.database import Database


def create_app(
    database: Database, *, version: str, lifespan: Lifespan[FastAPI] | None = None
) -> FastAPI:
    """The application; whoever makes it opens and closes the database. Links begin with the
    setting `public_url`, or with the address that a `Server` listens on."""
    settings = database.settings
    app = FastAPI(
        title="Mainspring",
        version=version,
        description="Background jobs and schedules on PostgreSQL.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.server = ServerState(database)
    app.state.public_url = app.state.listens_on = None
    app.router.routes.extend(_routes())
    install_errors(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_route(f"{PREFIX}/openapi.json", _show_document, include_in_schema=False)
    app.add_middleware(HostMiddleware, settings=settings)
    app.add_middleware(
        RequestMiddleware,
        most_bytes=settings.max_request_bytes,
        rate_per_minute=settings.requests_per_minute,
        proxies=settings.proxy_networks,
    )
    return app


@cache
def _routes() -> list[BaseRoute]:
    """What is asked for where. Made once for all applications of a process: to make it takes longer
    than a short command has."""
    everything = APIRouter()
    for router in routes.all_routers():
        everything.include_router(make_router(router), prefix=PREFIX)
    for module in routes.modules():
        if hasattr(module, "page_router"):
            everything.include_router(module.page_router)
    return everything.routes


async def _show_document(request: Request) -> Response:
    # In a thread, since it takes most of a second to make, and others wait for the event loop.
    document = await asyncio.to_thread(_document, request.app)
    return Response(document, media_type="application/json")


@lru_cache(maxsize=8)
def _document(app: FastAPI) -> bytes:
    return orjson.dumps(app.openapi())


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        # Only who asks for it pays for it.
        from mainspring.api.openapi.document import make_document  # noqa: PLC0415

        app.openapi_schema = make_document(app)
    return app.openapi_schema
