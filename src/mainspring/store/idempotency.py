"""Statements that keep changes through the API from each other's way."""

from typing import Any, NamedTuple

from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.types import TenantId

_STATEMENTS = load("idempotency")


class Reply(NamedTuple):
    """What was answered to a create."""

    status: int
    body: bytes


def lock(name: str) -> Call:
    return Call(_STATEMENTS["lock_edit"].sql, {"name": name})


def get_reply(tenant_id: TenantId, key: str) -> Call:
    """The row is for `read_reply`; no row if the key is new."""
    return Call(_STATEMENTS["get_reply"].sql, {"tenant_id": tenant_id, "key": key})


def keep_reply(tenant_id: TenantId, key: str, *, digest: bytes, reply: Reply) -> Call:
    params = {
        "tenant_id": tenant_id,
        "key": key,
        "digest": digest,
        "status": reply.status,
        "body": reply.body,
    }
    return Call(_STATEMENTS["keep_reply"].sql, params)


async def prune_replies(connection: AsyncConnection[Any]) -> None:
    """Remove answers that are older than a day."""
    await connection.execute(_STATEMENTS["prune_replies"].sql)


def read_reply(row: tuple[Any, ...]) -> tuple[bytes, Reply]:
    """The digest of the request, and what was answered."""
    digest, status, body = row
    return bytes(digest), Reply(status, bytes(body))
