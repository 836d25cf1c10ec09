"""Statements on flows and on what jobs wait for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from mainspring.db.arrays import IntegerArray
from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.flows import FlowJob, FlowState, FlowSummary, Parent
from mainspring.domain.types import JobId, JobState, TenantId, WaitsFor

_STATEMENTS = load("flows")
_PARENTS_OF = _STATEMENTS["parents_of"].sql
_BATCH = 1000


def enqueue(tenant_id: TenantId, name: str, steps: str) -> Call:
    """The row is (flow_id, job_ids); `steps` is JSON text."""
    params = {"tenant_id": tenant_id, "name": name, "steps": steps}
    return Call(_STATEMENTS["enqueue_flow"].sql, params)


async def settle(session: Session, parents: Sequence[JobId] | None) -> tuple[bool, int]:
    """Whether the lock was ours, and how much was settled; without parents all is looked at."""
    params = {"parents": None if parents is None else IntegerArray(parents), "limit": _BATCH}
    cursor = await session.execute(_STATEMENTS["settle"].sql, params)
    ((is_ours, settled),) = await cursor.fetchall()
    return is_ours, settled


async def cancel(session: Session, tenant_id: TenantId, flow_id: int, *, reason: str) -> int:
    """How many jobs were live."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id, "reason": reason}
    ((count,),) = await fetch_all(session, _STATEMENTS["cancel_flow"].sql, params)
    return int(count)


async def retry(session: Session, tenant_id: TenantId, flow_id: int) -> int:
    """How many jobs are back."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id}
    ((count,),) = await fetch_all(session, _STATEMENTS["retry_flow"].sql, params)
    return int(count)


async def get(session: Session, tenant_id: TenantId, flow_id: int) -> FlowSummary | None:
    params = {"tenant_id": tenant_id, "flow_id": flow_id}
    row = await fetch_one(session, _STATEMENTS["get_flow"].sql, params)
    return None if row is None else _summary(row)


async def list_flows(
    session: Session, tenant_id: TenantId | None, *, before: int | None, limit: int
) -> list[FlowSummary]:
    """Newest first; of all tenants if none is given."""
    params: dict[str, object] = {"before": before, "limit": limit}
    if tenant_id is None:
        sql = _STATEMENTS["list_flows_everywhere"].sql
    else:
        sql, params["tenant_id"] = _STATEMENTS["list_flows"].sql, tenant_id
    return [_summary(row) for row in await fetch_all(session, sql, params)]


async def jobs_of(
    session: Session, tenant_id: TenantId, flow_id: int, *, after: JobId | None, limit: int
) -> list[FlowJob]:
    params = {"tenant_id": tenant_id, "flow_id": flow_id, "after": after, "limit": limit}
    return [_job(row) for row in await fetch_all(session, _STATEMENTS["flow_jobs"].sql, params)]


def _summary(row: tuple[Any, ...]) -> FlowSummary:
    flow_id, tenant_id, name, state, jobs, live, blocked, running, *ends = row
    succeeded, failed, dead_letter, canceled, created_at, finished_at = ends
    counts = {
        JobState.BLOCKED: blocked,
        JobState.QUEUED: live - blocked - running,
        JobState.RUNNING: running,
        JobState.SUCCEEDED: succeeded,
        JobState.FAILED: failed,
        JobState.DEAD_LETTER: dead_letter,
        JobState.CANCELED: canceled,
    }
    return FlowSummary(
        id=flow_id,
        tenant_id=TenantId(tenant_id),
        name=name,
        state=FlowState(state),
        jobs=jobs,
        counts={state: count for state, count in counts.items() if count},
        created_at=datetime.fromtimestamp(created_at, UTC),
        finished_at=None if finished_at is None else datetime.fromtimestamp(finished_at, UTC),
    )


def _job(row: tuple[Any, ...]) -> FlowJob:
    job_id, step, definition, state, waits_for, parent_ids, last_error = row
    return FlowJob(
        id=JobId(job_id),
        step=step,
        definition=definition,
        state=JobState(state),
        waits_for=WaitsFor(waits_for) if waits_for else None,
        parent_ids=tuple(parent_ids),
        last_error=last_error,
    )


async def parents_of(session: Session, job_id: JobId) -> list[Parent]:
    """What the parents of a running job gave."""
    cursor = await session.execute(_PARENTS_OF, {"job_id": job_id})
    return [_parent(row) for row in await cursor.fetchall()]


def _parent(row: tuple[Any, ...]) -> Parent:
    parent_id, step, state, result = row
    given = None if result is None else orjson.loads(result)
    return Parent(JobId(parent_id), step or None, JobState(state), given)


async def prune_flows(session: Session) -> bool:
    """Whether there may be more to prune."""
    cursor = await session.execute(_STATEMENTS["prune_flows"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH


async def prune_dependencies(session: Session) -> bool:
    """Whether there may be more to prune."""
    cursor = await session.execute(_STATEMENTS["prune_dependencies"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH
