"""Use cases of errors: what fails, grouped."""

from datetime import UTC, datetime

from mainspring.db.sessions import Session
from mainspring.domain.error_groups import RECENT, ErrorGroup, GroupPlace
from mainspring.domain.errors.error_groups import ErrorGroupNotFound
from mainspring.domain.filters import Several, texts
from mainspring.domain.jobs.options import ensure_instant, ensure_text
from mainspring.domain.types import TenantId
from mainspring.store import error_groups as store


async def list_groups(
    session: Session,
    tenant_id: TenantId | None,
    *,
    since: datetime | None = None,
    definition: Several[str] = None,
    is_new: bool | None = None,
    after: GroupPlace | None = None,
    limit: int = 50,
) -> list[ErrorGroup]:
    """What has failed since an instant, or for a day; of all tenants if none is given. Of each the
    count is that of the days (UTC) since then."""
    ensure_instant("since", since)
    return await store.list_groups(
        session,
        tenant_id,
        since=since or datetime.now(UTC) - RECENT,
        definitions=texts("definition", definition),
        is_new=is_new,
        after=after,
        limit=limit,
    )


async def get(session: Session, tenant_id: TenantId, key: str) -> ErrorGroup:
    """A group with its days; raises ErrorGroupNotFound."""
    ensure_text("key", key)
    found = await store.get(session, tenant_id, key)
    if found is None:
        raise ErrorGroupNotFound(key)
    return found
