"""Statements on the figures of jobs."""

from datetime import date
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.types import TenantId

_STATEMENTS = load("tallies")
_BATCH = 10_000


async def fold(connection: AsyncConnection[Any]) -> int:
    """Add up some of what has changed; how many changes that were."""
    cursor = await connection.execute(_STATEMENTS["fold_tallies"].sql, {"limit": _BATCH})
    row = await cursor.fetchone()
    return row[0] if row else 0


def ended_counts(tenant_id: TenantId | None, since: date | None = None) -> Call:
    """Each row is (state, count); of all tenants if none is given."""
    if tenant_id is None:
        return Call(_STATEMENTS["ended_counts_everywhere"].sql, {"since": since})
    return Call(_STATEMENTS["ended_counts"].sql, {"tenant_id": tenant_id, "since": since})


def live_counts(tenant_id: TenantId | None, created_by: str | None = None) -> Call:
    """Each row is (state, count, how many wait, since when one is ready); of all tenants, and of
    whoever created them, if none is given."""
    if tenant_id is None:
        return Call(_STATEMENTS["live_counts_everywhere"].sql, {})
    params = {"tenant_id": tenant_id, "created_by": created_by}
    return Call(_STATEMENTS["live_counts"].sql, params)
