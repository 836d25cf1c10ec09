"""Statements that keep changes through the API from each other's way."""

from typing import NamedTuple

from mainspring.db.sessions import Session, fetch_one
from mainspring.db.statements import load
from mainspring.domain.types import TenantId

_STATEMENTS = load("idempotency")


class Reply(NamedTuple):
    """What was answered to a create."""

    status: int
    body: bytes


async def lock(session: Session, name: str) -> None:
    await session.execute(_STATEMENTS["lock_edit"].sql, {"name": name})


async def get_reply(session: Session, tenant_id: TenantId, key: str) -> tuple[bytes, Reply] | None:
    """The digest of the request, and what was answered; None if the key is new."""
    params = {"tenant_id": tenant_id, "key": key}
    row = await fetch_one(session, _STATEMENTS["get_reply"].sql, params)
    if row is None:
        return None
    digest, status, body = row
    return bytes(digest), Reply(status, bytes(body))


async def keep_reply(
    session: Session, tenant_id: TenantId, key: str, *, digest: bytes, reply: Reply
) -> None:
    params = {
        "tenant_id": tenant_id,
        "key": key,
        "digest": digest,
        "status": reply.status,
        "body": reply.body,
    }
    await session.execute(_STATEMENTS["keep_reply"].sql, params)


async def prune_replies(session: Session) -> None:
    """Remove answers that are older than a day."""
    await session.execute(_STATEMENTS["prune_replies"].sql)
