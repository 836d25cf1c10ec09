"""Statements on retention policies, and on what they would remove."""

from datetime import date, timedelta
from typing import Any

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.pruning import PruneWindow
from mainspring.domain.retention import RetentionDay, RetentionKind, RetentionPolicy
from mainspring.domain.types import JobState

_STATEMENTS = load("retention")
_PRUNES = {
    RetentionKind.AUDIT: _STATEMENTS["prune_audit"].sql,
    RetentionKind.SLOTS: _STATEMENTS["prune_slots"].sql,
    RetentionKind.EVENTS: _STATEMENTS["prune_events"].sql,
}


async def list_policies(session: Session, tenant_id: str | None) -> list[RetentionPolicy]:
    """By kind, tenant and state: those that matter to a tenant, or all."""
    rows = await fetch_all(session, _STATEMENTS["list_retention"].sql, {"tenant_id": tenant_id})
    return [_policy(row) for row in rows]


async def set_policy(session: Session, policy: RetentionPolicy, actor: str | None) -> None:
    params = {
        "kind": policy.kind.value,
        "tenant_id": policy.tenant_id,
        "state": policy.state,
        "keep": policy.keep,
        "actor": actor,
    }
    await session.execute(_STATEMENTS["set_retention"].sql, params)


async def unset_policy(
    session: Session,
    kind: RetentionKind,
    *,
    tenant_id: str | None,
    state: JobState | None,
    actor: str | None,
) -> bool:
    """Whether there was one."""
    params = {"kind": kind.value, "tenant_id": tenant_id, "state": state, "actor": actor}
    ((was_there,),) = await fetch_all(session, _STATEMENTS["unset_retention"].sql, params)
    return bool(was_there)


async def past_jobs(
    session: Session, tenant_id: str | None, *, state: JobState | None, keep: timedelta | None
) -> list[RetentionDay]:
    """What the next pass removes of jobs, with the policy if a period is given."""
    params = {"tenant_id": tenant_id, "state": state, "keep": keep}
    rows = await fetch_all(session, _STATEMENTS["past_jobs"].sql, params)
    return [_day(RetentionKind.JOBS, row) for row in rows]


async def past_records(
    session: Session,
    kind: RetentionKind,
    *,
    tenant_id: str | None,
    fallback: timedelta | None,
    keep: timedelta | None,
) -> list[RetentionDay]:
    """The same of any other kind; `fallback` applies without a policy for everyone."""
    params = {"kind": kind.value, "tenant_id": tenant_id, "fallback": fallback, "keep": keep}
    rows = await fetch_all(session, _STATEMENTS["past_records"].sql, params)
    return [_day(kind, row) for row in rows]


async def windows(
    session: Session, kind: RetentionKind, fallback: timedelta | None
) -> list[PruneWindow]:
    """One for each period that records of the kind are kept for, from the beginning of time."""
    params = {"kind": kind.value, "fallback": fallback}
    cursor = await session.execute(_STATEMENTS["record_windows"].sql, params)
    return [PruneWindow(*row) for row in await cursor.fetchall()]


async def prune(
    session: Session,
    kind: RetentionKind,
    window: PruneWindow,
    *,
    fallback: timedelta | None,
    limit: int,
) -> int:
    """How many old records of the window were removed; call again while it is the limit."""
    params = {
        "after": window.after,
        "before": window.before,
        "fallback": fallback,
        "limit": limit,
    }
    cursor = await session.execute(_PRUNES[kind], params)
    return cursor.rowcount


def _policy(row: tuple[Any, ...]) -> RetentionPolicy:
    kind, tenant_id, state, seconds = row
    return RetentionPolicy(
        RetentionKind(kind),
        timedelta(seconds=seconds),
        tenant_id,
        None if state is None else JobState(state),
    )


def _day(kind: RetentionKind, row: tuple[Any, ...]) -> RetentionDay:
    day, count, already = row
    return RetentionDay(kind, date.fromisoformat(day), count, already)
