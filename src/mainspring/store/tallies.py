"""Statements on the figures of jobs."""

from datetime import date, datetime
from typing import NamedTuple

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.types import JobState, TenantId

_STATEMENTS = load("tallies")


class LiveCount(NamedTuple):
    """The live jobs of a state: how many, how many of them wait, and since when one is ready."""

    state: JobState
    jobs: int
    waiting: int
    ready_since: datetime | None


async def ended_counts(
    session: Session, tenant_id: TenantId | None, since: date | None = None
) -> dict[JobState, int]:
    """Of all tenants if none is given."""
    params: dict[str, object] = {"since": since}
    if tenant_id is None:
        sql = _STATEMENTS["ended_counts_everywhere"].sql
    else:
        sql, params["tenant_id"] = _STATEMENTS["ended_counts"].sql, tenant_id
    rows = await fetch_all(session, sql, params)
    return {JobState(state): int(count) for state, count in rows}


async def live_counts(
    session: Session, tenant_id: TenantId | None, created_by: str | None = None
) -> list[LiveCount]:
    """Of all tenants, and of whoever created them, if none is given."""
    if tenant_id is None:
        rows = await fetch_all(session, _STATEMENTS["live_counts_everywhere"].sql, {})
    else:
        params = {"tenant_id": tenant_id, "created_by": created_by}
        rows = await fetch_all(session, _STATEMENTS["live_counts"].sql, params)
    return [LiveCount(JobState(row[0]), *row[1:]) for row in rows]
