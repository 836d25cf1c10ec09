"""Statements on flows and on what jobs wait for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from psycopg import AsyncConnection, Connection

from mainspring.db.arrays import IntegerArray
from mainspring.db.calls import Call
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


async def settle(
    connection: AsyncConnection[Any], parents: Sequence[JobId] | None
) -> tuple[bool, int]:
    """Whether the lock was ours, and how much was settled; without parents all is looked at."""
    params = {"parents": None if parents is None else IntegerArray(parents), "limit": _BATCH}
    cursor = await connection.execute(_STATEMENTS["settle"].sql, params)
    ((is_ours, settled),) = await cursor.fetchall()
    return is_ours, settled


def cancel(tenant_id: TenantId, flow_id: int, reason: str) -> Call:
    """The row is (how many jobs,)."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id, "reason": reason}
    return Call(_STATEMENTS["cancel_flow"].sql, params)


def retry(tenant_id: TenantId, flow_id: int) -> Call:
    """The row is (how many jobs,)."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id}
    return Call(_STATEMENTS["retry_flow"].sql, params)


def get(tenant_id: TenantId, flow_id: int) -> Call:
    """The row is one for `read_summary`; no row if there is none."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id}
    return Call(_STATEMENTS["get_flow"].sql, params)


def list_flows(tenant_id: TenantId | None, *, before: int | None, limit: int) -> Call:
    """Each row is one for `read_summary`; of all tenants if none is given."""
    params = {"before": before, "limit": limit}
    if tenant_id is None:
        return Call(_STATEMENTS["list_flows_everywhere"].sql, params)
    return Call(_STATEMENTS["list_flows"].sql, {**params, "tenant_id": tenant_id})


def jobs_of(tenant_id: TenantId, flow_id: int, *, after: JobId | None, limit: int) -> Call:
    """Each row is one for `read_job`."""
    params = {"tenant_id": tenant_id, "flow_id": flow_id, "after": after, "limit": limit}
    return Call(_STATEMENTS["flow_jobs"].sql, params)


def read_summary(row: tuple[Any, ...]) -> FlowSummary:
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


def read_job(row: tuple[Any, ...]) -> FlowJob:
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


async def parents_of(connection: AsyncConnection[Any], job_id: JobId) -> list[Parent]:
    """What the parents of a running job gave."""
    cursor = await connection.execute(_PARENTS_OF, {"job_id": job_id})
    return [_parent(row) for row in await cursor.fetchall()]


def parents_of_sync(connection: Connection[Any], job_id: JobId) -> list[Parent]:
    """The same on a blocking connection."""
    return [_parent(row) for row in connection.execute(_PARENTS_OF, {"job_id": job_id}).fetchall()]


def _parent(row: tuple[Any, ...]) -> Parent:
    parent_id, step, state, result = row
    given = None if result is None else orjson.loads(result)
    return Parent(JobId(parent_id), step or None, JobState(state), given)


async def prune_flows(connection: AsyncConnection[Any]) -> bool:
    """Whether there may be more to prune."""
    cursor = await connection.execute(_STATEMENTS["prune_flows"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH


async def prune_dependencies(connection: AsyncConnection[Any]) -> bool:
    """Whether there may be more to prune."""
    cursor = await connection.execute(_STATEMENTS["prune_dependencies"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH
