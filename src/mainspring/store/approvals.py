"""Statements on approvals."""

from datetime import UTC, datetime
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.approvals import Approval, Vote
from mainspring.domain.types import JobId, JobState, TenantId

_STATEMENTS = load("approvals")
_BATCH = 1000


def approve(tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None) -> Call:
    """The row is (state,)."""
    params = {"tenant_id": tenant_id, "job_id": job_id, "reason": reason, "actor": actor}
    return Call(_STATEMENTS["approve"].sql, params)


def reject(tenant_id: TenantId, job_id: JobId, *, reason: str, actor: str | None) -> Call:
    """The row is (state,)."""
    params = {"tenant_id": tenant_id, "job_id": job_id, "reason": reason, "actor": actor}
    return Call(_STATEMENTS["reject"].sql, params)


def open_approvals(tenant_id: TenantId | None, *, after: JobId | None, limit: int) -> Call:
    """Each row is one for `read`; of all tenants if none is given."""
    params = {"after": after, "limit": limit}
    if tenant_id is None:
        return Call(_STATEMENTS["open_approvals_everywhere"].sql, params)
    return Call(_STATEMENTS["open_approvals"].sql, {**params, "tenant_id": tenant_id})


def get(tenant_id: TenantId, job_id: JobId) -> Call:
    """The row is one for `read`; no row if the job never asked for approval."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    return Call(_STATEMENTS["get_approval"].sql, params)


def read(row: tuple[Any, ...]) -> Approval:
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


async def expire(connection: AsyncConnection[Any]) -> int:
    """How many approvals were settled because nobody gave them in time."""
    cursor = await connection.execute(_STATEMENTS["expire_approvals"].sql, {"limit": _BATCH})
    (row,) = await cursor.fetchall()
    return int(row[0])


async def prune(connection: AsyncConnection[Any]) -> bool:
    """Whether there may be more to prune."""
    cursor = await connection.execute(_STATEMENTS["prune_approvals"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH
