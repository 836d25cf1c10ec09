"""Statements on errors, grouped."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.error_groups import KEPT_DAYS, MOST_JOBS, ErrorDay, ErrorGroup, GroupPlace
from mainspring.domain.types import JobId, TenantId

_STATEMENTS = load("error_groups")
_BATCH = 10_000
_PRUNED_AT_ONCE = 1000
_MOST_DAYS = 10_000


async def fold(session: Session) -> bool:
    """Add up some of what has failed; whether there may be more."""
    cursor = await session.execute(_STATEMENTS["fold_failures"].sql, {"limit": _BATCH})
    row = await cursor.fetchone()
    return row is not None and row[0] == _BATCH


async def prune(session: Session) -> int:
    """How many rows of past days were removed; ask until there is none."""
    params = {"keep": KEPT_DAYS, "limit": _PRUNED_AT_ONCE}
    cursor = await session.execute(_STATEMENTS["prune_error_days"].sql, params)
    return cursor.rowcount


async def list_groups(
    session: Session,
    tenant_id: TenantId | None,
    *,
    since: datetime,
    definitions: Sequence[str],
    is_new: bool | None,
    after: GroupPlace | None,
    limit: int,
) -> list[ErrorGroup]:
    """New ones first, then those that failed most."""
    params = {
        "tenant_id": tenant_id,
        "since": since,
        "definitions": list(definitions) or None,
        "is_new": is_new,
        "after_new": after and after.is_new,
        "after_count": after and after.failures,
        "after_tenant": after and after.tenant_id,
        "after_key": after and after.key,
        "limit": limit,
    }
    rows = await fetch_all(session, _STATEMENTS["list_error_groups"].sql, params)
    return [_group(*row) for row in rows]


async def get(session: Session, tenant_id: TenantId, key: str) -> ErrorGroup | None:
    """With its days; None if nothing has failed so."""
    params = {"tenant_id": tenant_id, "error_key": key, "limit": _MOST_DAYS}
    rows = await fetch_all(session, _STATEMENTS["get_error_days"].sql, params)
    if not rows:
        return None
    days, definitions, counts, firsts, lasts, samples, job_ids, are_new = zip(*rows, strict=True)
    newest = sorted({job_id for ids in job_ids for job_id in ids}, reverse=True)
    return ErrorGroup(
        key=key,
        tenant_id=tenant_id,
        sample=samples[lasts.index(max(lasts))],
        count=sum(counts),
        first_at=min(firsts),
        last_at=max(lasts),
        definitions=sorted(set(definitions)),
        job_ids=[JobId(job_id) for job_id in newest[:MOST_JOBS]],
        is_new=are_new[0],
        days=[ErrorDay(*each) for each in zip(days, definitions, counts, strict=True)],
    )


def _group(*row: Any) -> ErrorGroup:
    tenant_id, key, is_new, count, first_at, last_at, definitions, sample, job_ids = row
    return ErrorGroup(
        key=key,
        tenant_id=TenantId(tenant_id),
        sample=sample,
        count=count,
        first_at=first_at,
        last_at=last_at,
        definitions=definitions,
        job_ids=job_ids,
        is_new=is_new,
    )
