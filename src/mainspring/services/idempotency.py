"""Changes that must not overwrite each other, and creates that are asked for twice."""

from collections.abc import Sequence

from mainspring.db.sessions import Session
from mainspring.domain.errors.access import ReplayConflict
from mainspring.domain.types import TenantId
from mainspring.store import idempotency as store
from mainspring.store.idempotency import Reply


async def lock(session: Session, noun: str, *, tenant_id: TenantId | None, name: str) -> None:
    """Keep others from editing the same thing until the transaction ends; without a tenant, what
    all tenants share."""
    await store.lock(session, f"{noun}/{tenant_id or '*'}/{name}")


async def earlier_reply(
    session: Session, tenant_id: TenantId, key: str, *, digests: Sequence[bytes]
) -> Reply | None:
    """What was answered when the same was asked for with this key, which any of the digests tells;
    None if it is new, and then the key is taken until the transaction ends."""
    await store.lock(session, f"reply/{tenant_id}/{key}")
    earlier = await store.get_reply(session, tenant_id, key)
    if earlier is None:
        return None
    known, reply = earlier
    if known not in digests:
        raise ReplayConflict(key)
    return reply


async def keep_reply(
    session: Session, tenant_id: TenantId, key: str, *, digest: bytes, reply: Reply
) -> None:
    await store.keep_reply(session, tenant_id, key, digest=digest, reply=reply)
