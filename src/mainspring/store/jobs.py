"""Statements on jobs that readers and operators use."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain.jobs.filters import JobFilter, write_filter
from mainspring.domain.jobs.model import FINAL_STATES, Attempt, Job, JobSummary
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import (
    AttemptStatus,
    JobId,
    JobState,
    TenantId,
)
from mainspring.store.rows.jobs import option_params, read_job, read_summary

_STATEMENTS = load("jobs")
_ENQUEUE = _STATEMENTS["enqueue"].sql
_ENQUEUE_PLAINLY = _STATEMENTS["enqueue_plainly"].sql
_ENQUEUE_WITH_OPTIONS = _STATEMENTS["enqueue_with_options"].sql
DEFAULT_OPTIONS = EnqueueOptions()
_LISTINGS = {
    "all": (_STATEMENTS["list_jobs"].sql, _STATEMENTS["list_jobs_edge"].sql),
    "all everywhere": (
        _STATEMENTS["list_jobs_everywhere"].sql,
        _STATEMENTS["list_jobs_everywhere_edge"].sql,
    ),
    "created": (
        _STATEMENTS["list_created_jobs"].sql,
        _STATEMENTS["list_created_jobs_edge"].sql,
    ),
    "unsuccessful": (
        _STATEMENTS["list_unsuccessful_jobs"].sql,
        _STATEMENTS["list_unsuccessful_jobs_edge"].sql,
    ),
    "unsuccessful everywhere": (
        _STATEMENTS["list_unsuccessful_jobs_everywhere"].sql,
        _STATEMENTS["list_unsuccessful_jobs_everywhere_edge"].sql,
    ),
}
# What one page may look at; some tens of milliseconds.
_MOST_SEEN = 20_000


def enqueue_plainly(definition: str, payload: str) -> Call:
    """One job on a connection of our own; the row is (job_id, is_new, nothing), or there is
    none and `enqueue` says why."""
    return Call(_ENQUEUE_PLAINLY, {"definition": definition, "payload": payload})


def enqueue(definition: str, payload: str, options: EnqueueOptions = DEFAULT_OPTIONS) -> Call:
    """One job; the row is (job_id, is_new)."""
    if options is DEFAULT_OPTIONS:
        return Call(_ENQUEUE, {"definition": definition, "payload": payload})
    params = {"definition": definition, "payload": payload, **option_params(options)}
    return Call(_ENQUEUE_WITH_OPTIONS, params)


def enqueue_as(digest: bytes, definition: str, payload: str, *, options: EnqueueOptions) -> Call:
    """The same for the bearer of a token, on a connection of our own."""
    params = {"definition": definition, "payload": payload, **option_params(options)}
    return Call(_STATEMENTS["enqueue_as"].sql, {**params, "digest": digest})


def enqueue_many(
    definition: str,
    payloads: Sequence[bytes],
    options: EnqueueOptions = DEFAULT_OPTIONS,
    *,
    dedupe_keys: Sequence[str | None] | None = None,
) -> Call:
    """One job a payload; each row is (job_id,)."""
    return Call(
        _STATEMENTS["enqueue_many"].sql,
        {
            "definition": definition,
            "payloads": TextArray(payloads),
            "dedupe_keys": list(dedupe_keys) if dedupe_keys is not None else None,
            **option_params(options),
        },
    )


def cancel(tenant_id: TenantId, job_id: JobId, reason: str) -> Call:
    """The row is (state,): canceled, or running when it was asked to stop."""
    params = {"tenant_id": tenant_id, "job_id": job_id, "reason": reason}
    return Call(_STATEMENTS["cancel"].sql, params)


def retry(tenant_id: TenantId, job_id: JobId, payload: str | None = None) -> Call:
    """The row is (job_id,)."""
    params = {"tenant_id": tenant_id, "job_id": job_id, "payload": payload}
    return Call(_STATEMENTS["retry"].sql, params)


def delete(tenant_id: TenantId, job_id: JobId) -> Call:
    return Call(_STATEMENTS["delete"].sql, {"tenant_id": tenant_id, "job_id": job_id})


async def get(session: Session, tenant_id: TenantId, job_id: JobId) -> Job | None:
    params = {"tenant_id": tenant_id, "job_id": job_id}
    rows = await fetch_mappings(session, _STATEMENTS["get"].sql, params)
    return read_job(rows[0]) if rows else None


async def list_jobs(
    session: Session,
    tenant_id: TenantId | None,
    asked: JobFilter,
    *,
    before: JobId | None = None,
    limit: int = 50,
) -> tuple[list[JobSummary], JobId | None]:
    """Newest first, and the id to go on before, if there may be more; of all tenants if none is
    given."""
    listing, edge_of = _LISTINGS[_listing(asked, tenant_id)]
    params = {
        "filter": orjson.dumps(write_filter(asked)).decode(),
        "state": asked.state,
        "created_by": asked.created_by,
        "tenant_id": tenant_id,
        "before": before,
        "most": _MOST_SEEN,
    }
    rows = await fetch_mappings(session, listing, {**params, "limit": limit})
    jobs = [read_summary(row) for row in rows]
    if len(jobs) == limit:
        return jobs, jobs[-1].id
    edge = await fetch_one(session, edge_of, params)
    return jobs, JobId(edge[0]) if edge else None


async def load_jobs(
    session: Session, tenant_id: TenantId | None, job_ids: Sequence[JobId]
) -> list[Job]:
    """The jobs whole, in any order; one that is gone meanwhile is left out."""
    params = {"tenant_id": tenant_id, "job_ids": IntegerArray(job_ids)}
    rows = await fetch_mappings(session, _STATEMENTS["load_listed_jobs"].sql, params)
    return [read_job(row) for row in rows]


def _listing(asked: JobFilter, tenant_id: TenantId | None) -> str:
    if asked.created_by is not None:
        return "created"
    is_unsuccessful = asked.state in FINAL_STATES and asked.state is not JobState.SUCCEEDED
    kind = "unsuccessful" if is_unsuccessful else "all"
    return kind if tenant_id is not None else f"{kind} everywhere"


async def attempts(session: Session, tenant_id: TenantId, job_id: JobId) -> list[Attempt]:
    """First to last; a running attempt has no finish."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    rows = await fetch_mappings(session, _STATEMENTS["attempts"].sql, params)
    return [_attempt(row) for row in rows]


async def queue_counts(session: Session, tenant_id: TenantId | None) -> list[Mapping[str, Any]]:
    """Ready, waiting and running jobs by queue, of all tenants if none is given."""
    params = {"tenant_id": tenant_id}
    return await fetch_mappings(session, _STATEMENTS["queue_counts"].sql, params)


def _attempt(row: Mapping[str, Any]) -> Attempt:
    return Attempt(
        job_id=JobId(row["job_id"]),
        number=row["number"],
        status=AttemptStatus(row["status"]),
        worker=str(row["worker_id"]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        error=row["error"],
        late_report=row["late_report"],
        pid=row["pid"],
        exit_code=row["exit_code"],
        stdout_tail=row["stdout_tail"],
        stderr_tail=row["stderr_tail"],
    )
