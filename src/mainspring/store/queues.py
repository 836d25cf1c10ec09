"""Statements on queues."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from mainspring.db.sessions import Session, fetch_all, fetch_mappings
from mainspring.db.statements import load
from mainspring.domain.queues import QueuePause, QueueState
from mainspring.domain.types import TenantId

_STATEMENTS = load("queues")


async def list_queues(
    session: Session,
    tenant_id: TenantId | None,
    *,
    after: str | None,
    after_tenant: str | None,
    limit: int,
) -> list[QueueState]:
    """By queue and tenant, of all tenants if none is given."""
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "after_tenant": after_tenant,
        "limit": limit,
    }
    rows = await fetch_mappings(session, _STATEMENTS["list_queues"].sql, params)
    return [_state(row) for row in rows]


async def paused(session: Session) -> list[QueuePause]:
    """By name."""
    rows = await fetch_all(session, _STATEMENTS["paused_queues"].sql, {})
    return [QueuePause(*row) for row in rows]


async def pause(
    session: Session,
    name: str,
    reason: str,
    *,
    until: datetime | None,
    duration: timedelta | None,
    actor: str | None,
) -> QueuePause:
    params = {
        "name": name,
        "reason": reason,
        "until": until,
        "duration": duration,
        "actor": actor,
    }
    (row,) = await fetch_all(session, _STATEMENTS["pause_queue"].sql, params)
    return QueuePause(*row)


async def resume(session: Session, name: str, actor: str | None) -> bool:
    """Whether it was paused."""
    params = {"name": name, "actor": actor}
    ((was_paused,),) = await fetch_all(session, _STATEMENTS["resume_queue"].sql, params)
    return bool(was_paused)


def _state(row: Mapping[str, Any]) -> QueueState:
    pause = None
    if row["paused_at"] is not None:
        pause = QueuePause(
            row["queue"], row["paused_at"], row["paused_until"], row["paused_by"], row["reason"]
        )
    counts = {name: row[name] for name in ("ready", "waiting", "running", "held")}
    return QueueState(
        row["queue"],
        row["tenant_id"],
        **counts,
        oldest_ready_at=row["oldest_ready_at"],
        pause=pause,
    )
