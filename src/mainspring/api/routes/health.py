"""/healthz and /readyz, which need no token and are beside the API."""

from fastapi import APIRouter, Request, Response

from mainspring.api.auth import ServerState
from mainspring.domain.health import Answer
from mainspring.services.health import body_of

page_router = APIRouter(include_in_schema=False)


@page_router.get("/healthz")
async def healthz(request: Request) -> Response:
    """Say whether this process moves; never asks the database."""
    server: ServerState = request.app.state.server
    return _response(server.health.healthy())


@page_router.get("/readyz")
async def readyz(request: Request) -> Response:
    """Say within a second whether this process can work."""
    server: ServerState = request.app.state.server
    return _response(await server.health.ready())


def _response(answer: Answer) -> Response:
    status = 200 if answer.is_yes else 503
    return Response(body_of(answer), status, media_type="application/json")
