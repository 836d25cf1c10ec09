"""The API as an ASGI application, on its own or mounted in another."""

from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from mainspring.api import routes
from mainspring.api.asgi import install_errors, make_router
from mainspring.api.auth import ServerState
from mainspring.api.hosts import HostMiddleware
from mainspring.api.middleware import RequestMiddleware
from mainspring.db.database import Database

PREFIX = "/api/v1"


def create_app(database: Database, *, version: str) -> FastAPI:
    """The application; whoever makes it opens and closes the database. Links begin with the
    setting `public_url`, or with the address that a `Server` listens on."""
    settings = database.settings
    app = FastAPI(
        title="Mainspring",
        version=version,
        description="Background jobs and schedules on PostgreSQL.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = ServerState(database)
    app.state.public_url = app.state.listens_on = None
    app.router.routes.extend(_routes())
    install_errors(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
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


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        # Only who asks for it pays for it.
        from mainspring.api.openapi.document import make_document  # noqa: PLC0415

        app.openapi_schema = make_document(app)
    return app.openapi_schema
