"""/tokens: API tokens."""

from typing import Annotated

from mainspring.api.auth import RequestContext, reading, writing
from mainspring.api.models.base import Filter, Page
from mainspring.api.models.tokens import CreatedTokenModel, NewToken, TokenModel
from mainspring.api.responses import numbered_place, page, read_numbered_place, reply
from mainspring.api.routes.parameters import After, Cursor, Limit, Named
from mainspring.api.routing import Body, Depends, Query, Response, Router
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import TokenState
from mainspring.services import tokens

router = Router()
Reader = Annotated[RequestContext, Depends(reading("tokens"))]
Writer = Annotated[RequestContext, Depends(writing("tokens"))]


@router.get("/tokens", tags=["tokens"], response_model=Page[TokenModel])
async def list_tokens(
    context: Reader,
    state: Annotated[
        Filter[TokenState] | None,
        Query(description="Only tokens in one of these states; active ones by default."),
    ] = None,
    role: Annotated[Filter[Role] | None, Query(description="Only tokens with these roles.")] = None,
    after: After = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List tokens by name."""
    name, number = read_numbered_place(cursor, after)
    found = await tokens.list_tokens(
        context.session,
        context.own_tenant,
        after=name,
        after_id=number,
        limit=limit,
        state=state or (TokenState.ACTIVE,),
        role=role,
    )
    last = found[-1] if len(found) == limit else None
    following = None if last is None else numbered_place(last.name, last.token_id)
    return page(found, TokenModel.of, following=following, model=Page[TokenModel])


@router.post("/tokens", tags=["tokens"], response_model=CreatedTokenModel, status_code=201)
async def create_token(context: Writer, token: Annotated[NewToken, Body()]) -> Response:
    """Create a token; its text is shown only in this response. It can do no more than the caller,
    and for no longer."""
    async with context.session.begin() as session:
        made = await tokens.create(
            session,
            token.name,
            token.role,
            tenant_id=context.tenant_for(Role(token.role)),
            tenants=token.tenants,
            scopes=token.scopes,
            life=token.expires_in,
            by=context.caller,
        )
    details = TokenModel.of(made.token)
    return reply(CreatedTokenModel.model_construct(token=made.text, details=details), 201)


@router.get("/tokens/{name}", tags=["tokens"], response_model=TokenModel)
async def get_token(context: Reader, name: Named) -> Response:
    """Get a token, without its text."""
    return reply(TokenModel.of(await tokens.get(context.session, name, context.own_tenant)))


@router.post("/tokens/{name}/revoke", tags=["tokens"], response_model=TokenModel)
async def revoke_token(context: Writer, name: Named) -> Response:
    """Revoke a token, from the next request on."""
    return reply(TokenModel.of(await tokens.revoke(context.session, name, context.own_tenant)))
