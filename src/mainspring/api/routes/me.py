"""/me: the caller of the request."""

from typing import Annotated

from mainspring.api.auth import RequestContext, known
from mainspring.api.models.callers import CallerModel
from mainspring.api.responses import reply
from mainspring.api.routing import Depends, Response, Router

router = Router()
Known = Annotated[RequestContext, Depends(known())]


@router.get("/me", tags=["me"], response_model=CallerModel)
async def get_me(context: Known) -> Response:
    """Get the caller and its permissions."""
    caller = context.caller
    scopes = None if caller.scopes is None else list(caller.scopes)
    made = CallerModel.model_construct(
        actor=caller.actor, role=caller.role, tenant=caller.tenant_id, scopes=scopes
    )
    return reply(made)
