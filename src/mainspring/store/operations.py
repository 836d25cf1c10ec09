"""Statements of bulk operations."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.jobs.filters import write_filter
from mainspring.domain.operations import Change, Operation, read_operation
from mainspring.domain.types import JobId, TenantId

_STATEMENTS = load("operations")
_LAST_ID = 2**63 - 1


class Place(NamedTuple):
    """Where jobs are looked for: behind an id, up to another, and how many at the most."""

    section: str
    behind: int = 0
    up_to: int = _LAST_ID
    most_seen: int = 5000


class Found(NamedTuple):
    """Jobs that pass, or how many; and the id to go on behind, None when all have been seen."""

    jobs: Any
    seen: int
    edge: int | None


async def start_bulk(session: Session, operation: Operation) -> JobId:
    params = {
        "action": str(operation.action),
        "asked": _filter(operation),
        "reason": operation.reason,
        "tenant_id": operation.tenant_id,
        "total": operation.total,
    }
    ((job_id,),) = await fetch_all(session, _STATEMENTS["start_bulk"].sql, params)
    return JobId(job_id)


async def count_jobs(session: Session, operation: Operation, place: Place) -> Found:
    (row,) = await fetch_all(session, _STATEMENTS["count_jobs"].sql, _sought(operation, place))
    return Found(*row)


async def get_operation(session: Session, job_id: JobId) -> Operation | None:
    """None if nobody asked for it in the one way that there is."""
    cursor = await session.execute(_STATEMENTS["get_operation"].sql, {"job_id": job_id})
    row = await cursor.fetchone()
    if row is None:
        return None
    payload, started_at, tenant_id, identity = row
    return read_operation(
        payload, tenant_id=TenantId(tenant_id), started_at=started_at, identity=identity
    )


async def seek_jobs(
    session: Session, operation: Operation, place: Place, *, most_found: int
) -> Found:
    params = {**_sought(operation, place), "most_found": most_found}
    cursor = await session.execute(_STATEMENTS["seek_jobs"].sql, params)
    (row,) = await cursor.fetchall()
    return Found(*row)


async def change_jobs(
    session: Session,
    operation: Operation,
    job_ids: Sequence[int],
    *,
    is_patient: bool,
) -> Change:
    params = {
        "action": str(operation.action),
        "job_ids": IntegerArray(job_ids),
        "states": [str(state) for state in operation.states],
        "tenant_id": operation.tenant_id,
        "reason": operation.reason,
        "actor": operation.actor,
        "identity": operation.identity,
        "is_patient": is_patient,
    }
    cursor = await session.execute(_STATEMENTS["change_jobs"].sql, params)
    ((facts,),) = await cursor.fetchall()
    return Change(facts["changed"], facts["skipped"], tuple(facts["busy"]))


def _sought(operation: Operation, place: Place) -> dict[str, Any]:
    return {
        **place._asdict(),
        "states": [str(state) for state in operation.states],
        "asked": _filter(operation),
        "tenant_id": operation.tenant_id,
        "ended_before": operation.ended_before,
    }


def _filter(operation: Operation) -> str:
    return orjson.dumps(write_filter(operation.asked)).decode()
