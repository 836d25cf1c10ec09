"""Statements on flows and on what jobs wait for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from mainspring.db.arrays import IntegerArray
from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.flows import FlowJob, FlowState, FlowSummary, Parent
from mainspring.domain.types import JobId, JobState, TenantId, WaitsFor
from mainspring.store.rows.pages import Keys, Page, page_of

_STATEMENTS = load("flows")
_PARENTS_OF = _STATEMENTS["parents_of"].sql
_BATCH = 1000
_PAGE = 2000
# Behind every id.
_LAST = 2**63 - 1


def enqueue(tenant_id: TenantId, name: str, steps: str) -> Call:
    """The row is (flow_id, job_ids); `steps` is JSON text."""
    params = {"tenant_id": tenant_id, "name": name, "steps": steps}
    return Call(_STATEMENTS["enqueue_flow"].sql, params)


class SweepPlace(NamedTuple):
    """Where a page of a sweep begins: behind this parent, and behind this child."""

    parent: int = 0
    child: int = 0


class Settled(NamedTuple):
    """Whether the lock was ours, how much was settled, and where the next page begins; None at the
    end of a sweep."""

    is_ours: bool
    total: int
    next: SweepPlace | None = None


async def settle(session: Session, parents: Sequence[JobId] | None) -> Settled:
    """Settle the children of these parents; without parents all is looked at."""
    params = {"parents": None if parents is None else IntegerArray(parents), "limit": _BATCH}
    cursor = await session.execute(_STATEMENTS["settle"].sql, params)
    (row,) = await cursor.fetchall()
    return Settled(*row)


async def settle_page(session: Session, place: SweepPlace) -> Settled:
    """Settle what is on one page of a sweep."""
    params = {**place._asdict(), "limit": _BATCH}
    cursor = await session.execute(_STATEMENTS["settle_page"].sql, params)
    ((is_ours, count, parent, child),) = await cursor.fetchall()
    if parent is None and child is None:
        return Settled(is_ours, count)
    following = SweepPlace(*(_LAST if each is None else each for each in (parent, child)))
    return Settled(is_ours, count, following)


async def decide_outcomes(
    session: Session, parents: Sequence[JobId] | None, place: SweepPlace
) -> list[JobId]:
    """Give dependencies of these parents, or of one page of a sweep, their outcome; the children
    that may have to be settled. None of them if the lock is not ours."""
    given = None if parents is None else IntegerArray(parents)
    params = {"parents": given, **place._asdict(), "limit": _BATCH}
    cursor = await session.execute(_STATEMENTS["decide_outcomes"].sql, params)
    ((children,),) = await cursor.fetchall()
    return [JobId(child) for child in sorted(set(children or ()))]


async def settle_children(session: Session, children: Sequence[int]) -> int:
    """How many of these children were settled; none if the lock is not ours."""
    params = {"children": IntegerArray(children)}
    cursor = await session.execute(_STATEMENTS["settle_children"].sql, params)
    ((count,),) = await cursor.fetchall()
    return int(count or 0)


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
    session: Session,
    tenant_id: TenantId | None,
    *,
    names: Sequence[str],
    before: int | None,
    limit: int,
) -> list[FlowSummary]:
    """Newest first; of all tenants if none is given."""
    chosen = list(names) or None
    params: dict[str, object] = {"names": chosen, "before": before, "limit": limit}
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


async def prune_jobs(session: Session, behind: Keys = (0, 0)) -> Page:
    """Look at the jobs of flows behind one, and remove those that are gone for good."""
    params = {"flow_id": behind[0], "job_id": behind[1], "limit": _PAGE}
    cursor = await session.execute(_STATEMENTS["prune_flow_jobs"].sql, params)
    return page_of(await cursor.fetchone())


async def prune_flows(session: Session, behind: Keys = (0,)) -> Page:
    """Look at the flows behind one, and remove those none of whose jobs is left."""
    params = {"flow_id": behind[0], "limit": _PAGE}
    cursor = await session.execute(_STATEMENTS["prune_flows"].sql, params)
    return page_of(await cursor.fetchone())


async def prune_dependencies(session: Session, behind: Keys = (0, 0)) -> Page:
    """Look at the dependencies behind one, and remove those of jobs that are gone for good."""
    params = {"job_id": behind[0], "parent_id": behind[1], "limit": _PAGE}
    cursor = await session.execute(_STATEMENTS["prune_dependencies"].sql, params)
    return page_of(await cursor.fetchone())
