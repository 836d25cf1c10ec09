"""Use cases of jobs that were enqueued: read, cancel, retry and delete them."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from mainspring.db.plans import Plan, Statement
from mainspring.db.sessions import Session
from mainspring.domain.errors import JobNotFound, JobUnsuccessful, ResultTimeout
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.jobs.model import Attempt, Job, JobSummary
from mainspring.domain.jobs.options import ensure_reason
from mainspring.domain.types import DEFAULT_TENANT, JobId, JobState, TenantId
from mainspring.settings import Settings
from mainspring.store import jobs as store


def retry(
    job_id: JobId,
    payload: dict[str, Any] | None,
    tenant_id: TenantId,
    *,
    settings: Settings,
    connection: object = None,
) -> Plan[None]:
    """Put a job that has ended back to queued; with another payload if one is given, in which the
    word [redacted] stands for the secret that is stored."""
    text = None
    if payload is not None:
        from mainspring.services.drafts import checking_draft  # noqa: PLC0415 - slow to import
        from mainspring.services.payloads import encode_payload  # noqa: PLC0415
        from mainspring.services.schemas import read_rules  # noqa: PLC0415
        from mainspring.services.secrets import encrypt_edit  # noqa: PLC0415
        from mainspring.store import secrets as secret_store  # noqa: PLC0415

        encode_payload(payload, settings.max_payload_bytes)
        rows = yield Statement(secret_store.paths_of_job(tenant_id, job_id), connection)
        if rows:
            yield checking_draft(payload, (yield from read_rules(rows[0][0])))
        edited = yield from encrypt_edit(
            payload, job_id, tenant_id=tenant_id, settings=settings, connection=connection
        )
        text = encode_payload(edited, settings.max_payload_bytes, is_stored=True).decode()
    yield Statement(store.retry(tenant_id, job_id, text), connection)


def cancel(
    job_id: JobId,
    reason: str,
    tenant_id: TenantId,
    *,
    settings: Settings,
    connection: object = None,
) -> Plan[JobState]:
    """Cancel a job that waits at once; ask a running one to stop, then its state is running."""
    from mainspring.services.redaction import shown_reason  # noqa: PLC0415 - slow to import

    ensure_reason(reason)
    shown = yield from shown_reason(
        reason, job_id, tenant_id=tenant_id, settings=settings, connection=connection
    )
    ((state,),) = yield Statement(store.cancel(tenant_id, job_id, shown), connection)
    return JobState(state)


def delete(job_id: JobId, tenant_id: TenantId, *, connection: object = None) -> Plan[None]:
    """Remove a job that is not running, with its attempts."""
    yield Statement(store.delete(tenant_id, job_id), connection)


async def get(session: Session, job_id: JobId, tenant_id: TenantId = DEFAULT_TENANT) -> Job:
    job = await store.get(session, tenant_id, job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


async def list_jobs(
    session: Session,
    tenant_id: TenantId | None,
    asked: JobFilter,
    *,
    before: JobId | None = None,
    limit: int = 50,
) -> tuple[list[JobSummary], JobId | None]:
    """Newest first, and the id to go on before, if there may be more: a page may be short, or
    empty, where few of very many jobs pass. Of all tenants if none is given."""
    found, following = await store.list_jobs(session, tenant_id, asked, before=before, limit=limit)
    return await store.with_relations(session, found), following


async def load_jobs(
    session: Session, tenant_id: TenantId | None, found: Sequence[JobSummary]
) -> list[Job]:
    """The jobs of a list with all that is kept of them; one that is gone meanwhile is left out."""
    loaded = {
        job.id: job
        for job in await store.load_jobs(session, tenant_id, [each.id for each in found])
    }
    return [loaded[each.id] for each in found if each.id in loaded]


async def attempts(
    session: Session, job_id: JobId, tenant_id: TenantId = DEFAULT_TENANT
) -> list[Attempt]:
    return await store.attempts(session, tenant_id, job_id)


async def wait_for_result(
    session: Session, job_id: JobId, tenant_id: TenantId, *, seconds: float | None
) -> Any:
    """The result of a job that succeeds in time; looks often at first, then more rarely."""
    until = None if seconds is None else time.monotonic() + seconds
    pause = 0.005
    while True:
        job = await get(session, job_id, tenant_id)
        if job.state is JobState.SUCCEEDED:
            return job.result
        if job.is_final:
            raise JobUnsuccessful(job_id, job.state, job.last_error)
        if until is not None and time.monotonic() >= until:
            raise ResultTimeout(job_id, job.state)
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.25)
