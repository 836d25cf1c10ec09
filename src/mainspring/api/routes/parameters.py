"""Parameters that several endpoints have, and creates that may be asked for twice."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from mainspring.api.auth import RequestContext
from mainspring.api.models.base import Filter, IdIn, Name, no_nul
from mainspring.api.responses import JSON
from mainspring.api.routing import Header, Path, Query, Response, read_name
from mainspring.db.tenant_sessions import TransactionSession

Number = Annotated[IdIn, Path(description="Id of the object.")]
Named = Annotated[Name, AfterValidator(read_name), Path(description="Name of the object.")]
Given = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(no_nul)]
NameFilter = Filter[Given] | None
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")]
After = Annotated[Given | None, Query(description="Only names after this one.")]
Cursor = Annotated[
    str | None, Query(max_length=1000, description="next_cursor from the previous page.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A request that is repeated with the same key is carried out once.",
    ),
]

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description="The ETag of the state that the change is meant for; any other is refused "
        "with 412.",
    ),
]


async def once(
    context: RequestContext,
    key: str | None,
    create: Callable[[TransactionSession], Awaitable[Response]],
) -> Response:
    """Create something, or answer as before where the same key came with the same request.

    All of it is one session, so that a key is kept if and only if the thing is there.
    """
    from mainspring.services import idempotency  # noqa: PLC0415 - for creates only
    from mainspring.store.idempotency import Reply  # noqa: PLC0415

    async with context.session.begin() as session:
        if key is None:
            return await create(session)
        digests = await _digests(context)
        earlier = await idempotency.earlier_reply(session, context.tenant_id, key, digests=digests)
        if earlier is not None:
            headers = {"Idempotency-Replayed": "true"}
            return Response(earlier.body, earlier.status, headers, JSON)
        made = await create(session)
        reply = Reply(made.status_code, bytes(made.body))
        await idempotency.keep_reply(
            session, context.tenant_id, key, digest=digests[0], reply=reply
        )
        return made


async def _digests(context: RequestContext) -> list[bytes]:
    from mainspring.services.secrets import key_ring  # noqa: PLC0415 - for creates only

    request = context.request
    asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return key_ring(context.server.database.settings).digests(asked + await request.body())
