"""Statements on approvals."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.approvals import Approval, Vote
from mainspring.domain.types import JobId, JobState, TenantId
from mainspring.store.rows.pages import Keys, Page, page_of

_STATEMENTS = load("approvals")
_BATCH = 1000
_PAGE = 2000


async def approve(
    session: Session, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> JobState:
    """What the job has become."""
    params = {"tenant_id": tenant_id, "job_id": job_id, "reason": reason, "actor": actor}
    ((state,),) = await fetch_all(session, _STATEMENTS["approve"].sql, params)
    return JobState(state)


async def reject(
    session: Session, tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None
) -> None:
    params = {"tenant_id": tenant_id, "job_id": job_id, "reason": reason, "actor": actor}
    await session.execute(_STATEMENTS["reject"].sql, params)


async def open_approvals(
    session: Session,
    tenant_id: TenantId | None,
    *,
    definitions: Sequence[str],
    after: JobId | None,
    limit: int,
) -> list[Approval]:
    """Of all tenants if none is given."""
    chosen = list(definitions) or None
    params: dict[str, object] = {"definitions": chosen, "after": after, "limit": limit}
    if tenant_id is None:
        sql = _STATEMENTS["open_approvals_everywhere"].sql
    else:
        sql, params["tenant_id"] = _STATEMENTS["open_approvals"].sql, tenant_id
    return [_approval(row) for row in await fetch_all(session, sql, params)]


async def get(session: Session, tenant_id: TenantId, job_id: JobId) -> Approval | None:
    """None if the job never asked for approval."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    row = await fetch_one(session, _STATEMENTS["get_approval"].sql, params)
    return None if row is None else _approval(row)


def _approval(row: tuple[Any, ...]) -> Approval:
    job_id, tenant_id, definition, payload, state, needed, approvers, *rest = row
    requested_at, expires_at, decision, _, votes = rest
    return Approval(
        job_id=JobId(job_id),
        tenant_id=TenantId(tenant_id),
        definition=definition,
        payload=orjson.loads(payload),
        state=JobState(state),
        needed=needed,
        approvers=tuple(approvers or ()),
        requested_at=datetime.fromtimestamp(requested_at, UTC),
        expires_at=None if expires_at is None else datetime.fromtimestamp(expires_at, UTC),
        decision=decision,
        votes=tuple(_vote(vote) for vote in orjson.loads(votes)),
    )


def _vote(facts: dict[str, Any]) -> Vote:
    voted_at = datetime.fromisoformat(facts["voted_at"]).astimezone(UTC)
    return Vote(facts["actor"], facts["is_approval"], facts["reason"], voted_at)


async def expire(session: Session, chosen: Sequence[int] | None = None) -> int:
    """How many approvals were settled because nobody gave them in time; of the chosen jobs only
    if there are any."""
    params = {"limit": _BATCH, "chosen": None if chosen is None else list(chosen)}
    cursor = await session.execute(_STATEMENTS["expire_approvals"].sql, params)
    (row,) = await cursor.fetchall()
    return int(row[0])


async def find_expired(session: Session) -> list[int]:
    """The jobs whose approvals `expire` would settle."""
    cursor = await session.execute(_STATEMENTS["find_expired_approvals"].sql, {"limit": _BATCH})
    return [job_id for (job_id,) in await cursor.fetchall()]


async def prune(session: Session, behind: Keys = (0,)) -> Page:
    """Look at the approvals behind a job, and remove those whose job is gone for good."""
    params = {"job_id": behind[0], "limit": _PAGE}
    cursor = await session.execute(_STATEMENTS["prune_approvals"].sql, params)
    return page_of(await cursor.fetchone())
