"""Statements on jobs that readers and operators use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain.jobs.filters import JobFilter, write_filter
from mainspring.domain.jobs.model import FINAL_STATES, Attempt, Job, JobSummary
from mainspring.domain.jobs.options import EnqueueOptions, OwnCreator
from mainspring.domain.pages import merge_pages
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
    "scheduled": (
        _STATEMENTS["list_scheduled_jobs"].sql,
        _STATEMENTS["list_scheduled_jobs_edge"].sql,
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
_UNSUCCESSFUL = FINAL_STATES - {JobState.SUCCEEDED}
# What a job of a schedule is created by is not stored with it.
_DERIVED = "system:"
# What one page may look at; some tens of milliseconds.
_MOST_SEEN = 20_000
RELATIONS = ("flow_id", "event_id", "parent_id", "worker_id")
_MOST_RELATED = 10_000
_MOST_CHOSEN = 1000


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
    """With the worker that runs it or, if it has ended, that ran it last."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    rows = await fetch_mappings(session, _STATEMENTS["get"].sql, params)
    if not rows:
        return None
    (row,) = rows
    return read_job({**row, "worker_id": row["worker_id"] or row["last_worker_id"]})


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
    if any(getattr(asked, relation) for relation in RELATIONS):
        return await _list_related(session, tenant_id, asked, before=before, limit=limit)
    schedules = await _schedules(session, tenant_id, asked.schedule)
    kind, parts = _parts(asked, tenant_id, schedules)
    params = {
        "filter": orjson.dumps(write_filter(asked)).decode(),
        "tenant_id": tenant_id,
        "before": before,
        "most": _MOST_SEEN // len(parts),
        "limit": limit,
    }
    pages = [await _list_part(session, kind, {**params, **part}) for part in parts]
    return merge_pages(pages, lambda job: job.id, limit)


async def _list_part(
    session: Session, kind: str, params: Mapping[str, Any]
) -> tuple[list[JobSummary], JobId | None]:
    listing, edge_of = _LISTINGS[kind]
    jobs = [read_summary(row) for row in await fetch_mappings(session, listing, params)]
    if len(jobs) == params["limit"]:
        return jobs, jobs[-1].id
    edge = await fetch_one(session, edge_of, params)
    return jobs, JobId(edge[0]) if edge else None


async def _list_related(
    session: Session,
    tenant_id: TenantId | None,
    asked: JobFilter,
    *,
    before: JobId | None,
    limit: int,
) -> tuple[list[JobSummary], JobId | None]:
    """The same of jobs of a flow, an event, a parent or a worker, which are few."""
    ids, edge = await _related_ids(session, asked, before)
    params = {
        "filter": orjson.dumps(write_filter(asked)).decode(),
        "tenant_id": tenant_id,
        "job_ids": IntegerArray(ids[:_MOST_CHOSEN]),
        "limit": limit,
    }
    rows = await fetch_mappings(session, _STATEMENTS["list_chosen_jobs"].sql, params)
    jobs = [read_summary(row) for row in rows]
    if len(jobs) == limit:
        return jobs, jobs[-1].id
    return jobs, JobId(ids[_MOST_CHOSEN - 1]) if len(ids) > _MOST_CHOSEN else edge


async def _related_ids(
    session: Session, asked: JobFilter, before: JobId | None
) -> tuple[list[int], JobId | None]:
    """The jobs that have all relations of the filter, newest first, and the id to go on before."""
    found: list[set[int]] = []
    edge: JobId | None = None
    for relation in RELATIONS:
        if not (ids := getattr(asked, relation)):
            continue
        related: set[int] = set()
        for rows in await _related_rows(session, relation, ids, before=before):
            related |= {row[0] for row in rows}
            if len(rows) == _MOST_RELATED:
                edge = max(edge or JobId(0), JobId(rows[-1][0]))
        found.append(related)
    common = set.intersection(*found)
    return sorted((each for each in common if each >= (edge or 0)), reverse=True), edge


async def _related_rows(
    session: Session, relation: str, ids: Sequence[int], *, before: JobId | None
) -> list[list[tuple[Any, ...]]]:
    bounds: dict[str, Any] = {"before": before, "most": _MOST_RELATED}
    params = {**bounds, "relation": relation, "ids": list(ids)}
    pages = [await fetch_all(session, _STATEMENTS["related_jobs"].sql, params)]
    if relation == "parent_id":
        creators = [str(OwnCreator.of_job(JobId(each))) for each in ids]
        params = {**bounds, "creators": creators}
        pages.append(await fetch_all(session, _STATEMENTS["follow_ups"].sql, params))
    return pages


async def with_relations(session: Session, found: Sequence[JobSummary]) -> list[JobSummary]:
    """The jobs of a list with their events, flows, parents and error keys."""
    if not found:
        return []
    params = {"job_ids": IntegerArray([job.id for job in found])}
    rows = await fetch_mappings(session, _STATEMENTS["load_relations"].sql, params)
    known = {row["job_id"]: row for row in rows}
    return [_related(job, known[job.id]) if job.id in known else job for job in found]


def _related(job: JobSummary, row: Mapping[str, Any]) -> JobSummary:
    parents = tuple(row["parent_ids"])
    facts = {name: row[name] for name in ("event_id", "flow_id", "error_key")}
    return replace(job, **facts, parent_ids=parents)


async def load_jobs(
    session: Session, tenant_id: TenantId | None, job_ids: Sequence[JobId]
) -> list[Job]:
    """The jobs whole, in any order; one that is gone meanwhile is left out."""
    params = {"tenant_id": tenant_id, "job_ids": IntegerArray(job_ids)}
    rows = await fetch_mappings(session, _STATEMENTS["load_listed_jobs"].sql, params)
    return [read_job(row) for row in rows]


async def _schedules(
    session: Session, tenant_id: TenantId | None, names: Sequence[str]
) -> list[int]:
    """The ids of schedules; none if one of the names is that of a schedule that is gone, whose
    jobs are found among all."""
    if not names:
        return []
    params = {"names": list(names), "tenant_id": tenant_id}
    rows = await fetch_all(session, _STATEMENTS["schedules_named"].sql, params)
    return [row[1] for row in rows] if {row[0] for row in rows} == set(names) else []


def _parts(
    asked: JobFilter, tenant_id: TenantId | None, schedules: Sequence[int]
) -> tuple[str, list[dict[str, Any]]]:
    """The kind of the statements that list jobs in the order of an index, and of each what the
    index begins with: one schedule, one creator, or one state."""
    if schedules:
        return "scheduled", [{"schedule_id": each} for each in schedules]
    if asked.created_by and not any(each.startswith(_DERIVED) for each in asked.created_by):
        return "created", [{"created_by": each} for each in asked.created_by]
    is_unsuccessful = asked.state and _UNSUCCESSFUL.issuperset(asked.state)
    kind = "unsuccessful" if is_unsuccessful else "all"
    parts: list[dict[str, Any]] = [{"state": each} for each in asked.state]
    return (kind if tenant_id is not None else f"{kind} everywhere"), (
        parts if is_unsuccessful else [{}]
    )


async def attempts(session: Session, tenant_id: TenantId, job_id: JobId) -> list[Attempt]:
    """First to last; a running attempt has no finish."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    rows = await fetch_mappings(session, _STATEMENTS["attempts"].sql, params)
    return [_attempt(row) for row in rows]


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
        late_report_at=row["late_report_at"],
        error_key=row["error_key"],
    )
