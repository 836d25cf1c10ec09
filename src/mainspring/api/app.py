"""The API as an ASGI application, on its own or mounted in another."""

from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from mainspring.api import errors, routes
from mainspring.api.asgi import install_errors, make_router
from mainspring.api.auth import ServerState
from mainspring.api.hosts import HostMiddleware
from mainspring.api.middleware import RequestMiddleware
from mainspring.db.database import Database

PREFIX = "/api/v1"
_REFUSALS = {
    400: "The Host header names another server.",
    401: "The token is missing or invalid.",
    403: "The caller is not allowed to do this.",
    404: "Not found, or not in this tenant.",
    408: "The body took too long to arrive.",
    409: "The current state does not allow it.",
    412: "It was changed since the caller last read it.",
    413: "The request is too large.",
    422: "The request is invalid; `errors` says where.",
    429: "Too many requests.",
    503: "The database is unavailable, or there are too many connections.",
}
_PROBLEM = {errors.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}


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
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"description": said, "content": _PROBLEM} for status, said in _REFUSALS.items()
    }
    for router in routes.all_routers():
        everything.include_router(make_router(router), prefix=PREFIX, responses=refusals)
    for module in routes.modules():
        if hasattr(module, "page_router"):
            everything.include_router(module.page_router)
    return everything.routes


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        for methods in document["paths"].values():
            for operation in methods.values():
                _without_null(operation.get("parameters", []))
        schemas = document["components"]["schemas"]
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        made = errors.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(made.pop("$defs"))
        schemas["Problem"] = made
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


def _without_null(parameters: list[dict[str, Any]]) -> None:
    """A parameter that may be left out cannot be null: there is no way to write it."""
    for parameter in parameters:
        schema = parameter["schema"]
        kinds = [kind for kind in schema.pop("anyOf", []) if kind != {"type": "null"}]
        parameter["schema"] = {**kinds[0], **schema} if kinds else schema
