"""Changes that must not overwrite each other, and creates that are asked for twice."""

from mainspring.db.database import Database
from mainspring.domain.errors.access import ReplayConflict
from mainspring.domain.types import TenantId
from mainspring.store import idempotency as store
from mainspring.store.idempotency import Reply


async def lock(database: Database, noun: str, *, tenant_id: TenantId, name: str) -> None:
    """Keep others from editing the same thing until the transaction ends."""
    await database.arun(store.lock(f"{noun}/{tenant_id}/{name}"))


async def earlier_reply(
    database: Database, tenant_id: TenantId, key: str, *, digest: bytes
) -> Reply | None:
    """What was answered when the same was asked for with this key; None if it is new, and then
    the key is taken until the transaction ends."""
    await database.arun(store.lock(f"reply/{tenant_id}/{key}"))
    rows = await database.arun(store.get_reply(tenant_id, key))
    if not rows:
        return None
    known, reply = store.read_reply(rows[0])
    if known != digest:
        raise ReplayConflict(key)
    return reply


async def keep_reply(
    database: Database, tenant_id: TenantId, key: str, *, digest: bytes, reply: Reply
) -> None:
    await database.arun(store.keep_reply(tenant_id, key, digest=digest, reply=reply))
