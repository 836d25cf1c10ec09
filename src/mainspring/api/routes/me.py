"""/me: the caller of the request."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from mainspring.api.auth import RequestContext, known
from mainspring.api.models.callers import CallerModel
from mainspring.api.requests import JsonRoute
from mainspring.api.responses import reply

router = APIRouter(route_class=JsonRoute)
Known = Annotated[RequestContext, Depends(known())]


@router.get("/me", tags=["me"], response_model=CallerModel)
async def me(context: Known) -> Response:
    """Who you are, and what you may do."""
    caller = context.caller
    scopes = None if caller.scopes is None else list(caller.scopes)
    made = CallerModel.model_construct(
        actor=caller.actor, role=caller.role, tenant=caller.tenant_id, scopes=scopes
    )
    return reply(made)
