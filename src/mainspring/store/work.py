"""Statements for workers that are reached over the API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import orjson

from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.limits import LimitKey
from mainspring.domain.secrets.paths import Path
from mainspring.domain.types import AttemptStatus, Fence, JobId, JobState, TenantId, WorkerId
from mainspring.store.attempts import ClaimedRow, Report
from mainspring.store.outputs import Output
from mainspring.store.rows.definitions import read_backoff
from mainspring.store.rows.secrets import read_paths

_STATEMENTS = load("work")


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that a worker says it runs: which, under which fence, and which worker."""

    worker_id: WorkerId
    job_id: JobId
    fence: Fence

    @property
    def report(self) -> Report:
        return Report(self.job_id, self.fence)


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """What is needed to carry out a report on a job."""

    tenant_id: TenantId
    definition: str
    payload: str
    failures: int
    max_attempts: int
    limit_name: str | None
    limit_key: str | None
    ran: int
    backoff: Backoff
    secret_paths: tuple[Path, ...]
    is_overdue: bool


class PastAttempt(NamedTuple):
    """How an attempt ended, what its job is now, and what has secrets in that."""

    status: AttemptStatus
    state: JobState
    tenant_id: TenantId
    definition: str
    payload: str
    secret_paths: tuple[Path, ...]


class Stop(NamedTuple):
    """A job that its worker is to stop, and why."""

    job_id: JobId
    fence: Fence
    reason: str


async def queues_of(session: Session, worker_id: WorkerId, identity: str) -> list[str] | None:
    """None if the worker has lost its lease, or is someone else's."""
    params = {"worker_id": worker_id, "identity": identity}
    row = await (await session.execute(_STATEMENTS["own_worker"].sql, params)).fetchone()
    return None if row is None else list(row[0])


async def leased_job(session: Session, lease: Lease) -> LeasedJob | None:
    """None if the worker does not run the job any more; raises LeaseLost if it does, but under
    another fence."""
    params = {"worker_id": lease.worker_id, "job_id": lease.job_id}
    row = await (await session.execute(_STATEMENTS["leased_job"].sql, params)).fetchone()
    if row is None:
        return None
    tenant_id, definition, payload, failures, max_attempts, limit_name, limit_key, ran = row[:8]
    backoff, paths, is_overdue, fence = row[8:]
    if fence != lease.fence:
        raise LeaseLost(
            lease.job_id,
            f"the fence does not belong to this attempt of job {lease.job_id}; send the fence that "
            "came with its claim",
        )
    return LeasedJob(
        tenant_id=TenantId(tenant_id),
        definition=definition,
        payload=payload,
        failures=failures,
        max_attempts=max_attempts,
        limit_name=limit_name,
        limit_key=limit_key,
        ran=ran,
        backoff=Backoff() if backoff is None else read_backoff(orjson.loads(backoff)),
        secret_paths=read_paths(paths) if paths else (),
        is_overdue=is_overdue,
    )


async def past_attempt(
    session: Session, lease: Lease, *, identity: str, tenants: Sequence[str] | None
) -> PastAttempt | None:
    """An attempt that is over. None for any other, and for one of someone else or of a tenant that
    is not among these."""
    params = {
        "worker_id": lease.worker_id,
        "job_id": lease.job_id,
        "fence": lease.fence,
        "identity": identity,
        "tenants": None if tenants is None else list(tenants),
    }
    row = await (await session.execute(_STATEMENTS["past_attempt"].sql, params)).fetchone()
    if row is None:
        return None
    status, state, tenant_id, definition, payload, paths = row
    return PastAttempt(
        AttemptStatus(status),
        JobState(state),
        TenantId(tenant_id),
        definition,
        payload,
        read_paths(paths) if paths else (),
    )


async def keep_late_report(
    session: Session, status: AttemptStatus, error: str | None, *, output: Output
) -> None:
    """Keep what was reported of an attempt that was lost."""
    params = {
        "job_id": output.report.job_id,
        "fence": output.report.fence,
        "status": str(status),
        "error": error,
        "exit_code": output.exit_code,
        "stdout": output.stdout,
        "stderr": output.stderr,
    }
    await session.execute(_STATEMENTS["keep_late_report"].sql, params)


async def to_stop(session: Session, worker_id: WorkerId) -> list[Stop]:
    cursor = await session.execute(_STATEMENTS["to_stop"].sql, {"worker_id": worker_id})
    return [Stop(JobId(row[0]), Fence(row[1]), row[2]) for row in await cursor.fetchall()]


async def timeouts(
    session: Session, versions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], timedelta]:
    """How long jobs of versions of definitions may run."""
    asked = sorted(set(versions))
    params = {"keys": [key for key, _ in asked], "versions": [number for _, number in asked]}
    cursor = await session.execute(_STATEMENTS["timeouts"].sql, params)
    return {(row[0], row[1]): timedelta(seconds=row[2]) for row in await cursor.fetchall()}


async def announce_free_place(session: Session, key: LimitKey) -> None:
    params = {"limit_name": key.limit, "limit_key": key.key, "tenant_id": key.tenant_id}
    await session.execute(_STATEMENTS["announce_free_place"].sql, params)


async def held_besides(
    session: Session, worker_id: WorkerId, job_ids: Iterable[int], *, limit: int
) -> list[ClaimedRow]:
    """What the worker runs besides these jobs, as it was claimed."""
    params = {"worker_id": worker_id, "job_ids": list(job_ids), "limit": limit}
    cursor = await session.execute(_STATEMENTS["held_besides"].sql, params)
    return [ClaimedRow(*row) for row in await cursor.fetchall()]


async def to_run_alone(
    session: Session, job_ids: Iterable[JobId], *, lost: int, patience: timedelta
) -> dict[JobId, bool]:
    """Of some suspects those that have lost so many workers, and whether each has been a suspect
    for longer than the patience."""
    params = {"job_ids": list(job_ids), "lost": lost, "patience": patience}
    cursor = await session.execute(_STATEMENTS["to_run_alone"].sql, params)
    return {JobId(row[0]): bool(row[1]) for row in await cursor.fetchall()}


async def held_beside(
    session: Session, worker_id: WorkerId, job_ids: Iterable[JobId]
) -> tuple[bool, bool]:
    """Whether the worker runs something beside these jobs, and whether that is to run alone."""
    params = {"worker_id": worker_id, "job_ids": list(job_ids)}
    row = await (await session.execute(_STATEMENTS["held_beside"].sql, params)).fetchone()
    return (False, False) if row is None else (row[0], row[1])
