"""Statements on secrets: where payloads hold them, and payloads that are encrypted anew."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson

from mainspring.db.calls import Call
from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.secrets.paths import Path
from mainspring.domain.types import JobId, TenantId
from mainspring.store.rows.secrets import read_paths

_STATEMENTS = load("secrets")


class EncryptedJob(NamedTuple):
    """A job with encrypted values."""

    id: int
    tenant_id: TenantId
    definition: str
    payload: str


class Reencrypted(NamedTuple):
    """A payload that was encrypted anew, and what it was and is compared by."""

    row: EncryptedJob
    after: str
    was_compared_by: str
    is_compared_by: str


class EncryptedSchedule(NamedTuple):
    """A schedule with encrypted values; `declared` is the payload that code declared, if any."""

    id: int
    tenant_id: TenantId
    definition: str
    payload: str
    declared: str | None
    declared_definition: str | None


def paths_of_job(tenant_id: TenantId, job_id: JobId) -> Call:
    """The row is (definition, paths as text), for `read_paths`; no row if there is no job."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    return Call(_STATEMENTS["paths_of_job"].sql, params)


def secrets_of_job(tenant_id: TenantId, job_id: JobId) -> Call:
    """The row is (definition, paths as text, payload as text); no row for a job without secrets, or
    one that has ended."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    return Call(_STATEMENTS["secrets_of_job"].sql, params)


async def paths_of_definitions(
    session: Session, keys: Collection[str]
) -> dict[str, tuple[Path, ...]]:
    """Of those of the definitions that there are."""
    rows = await fetch_all(session, _STATEMENTS["paths_of_definitions"].sql, {"keys": list(keys)})
    return {key: read_paths(text) for key, text in rows}


async def real_payload(session: Session, tenant_id: TenantId, name: str) -> Any:
    """The payload of a schedule that there is, as it is stored."""
    params = {"tenant_id": tenant_id, "name": name}
    ((_, text),) = await fetch_all(session, _STATEMENTS["real_payload"].sql, params)
    return orjson.loads(text)


async def stored_payloads(
    session: Session, schedules: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The payloads of schedules, by tenant and name, as they are stored: the one that code declared
    first, if there is one."""
    params = {
        "tenant_ids": [tenant_id for tenant_id, _ in schedules],
        "names": [name for _, name in schedules],
    }
    rows = await fetch_all(session, _STATEMENTS["stored_payloads"].sql, params)
    return {
        (tenant_id, name): tuple(orjson.loads(text) for text in (declared, payload) if text)
        for tenant_id, name, payload, declared in rows
    }


async def encrypted_jobs(session: Session, after: int, limit: int) -> list[EncryptedJob]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["encrypted_jobs"].sql, params)
    return [EncryptedJob(*row) for row in rows]


async def encrypted_history(session: Session, after: int, limit: int) -> list[EncryptedJob]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["encrypted_history"].sql, params)
    return [EncryptedJob(*row) for row in rows]


async def encrypted_schedules(session: Session, after: int, limit: int) -> list[EncryptedSchedule]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["encrypted_schedules"].sql, params)
    return [EncryptedSchedule(*row) for row in rows]


async def reencrypt_jobs(session: Session, jobs: Sequence[Reencrypted]) -> int:
    """How many were changed."""
    params = _reencrypted(jobs)
    ((count,),) = await fetch_all(session, _STATEMENTS["reencrypt_jobs"].sql, params)
    return int(count)


async def reencrypt_history(session: Session, jobs: Sequence[Reencrypted]) -> int:
    """How many were changed."""
    params = _reencrypted(jobs)
    ((count,),) = await fetch_all(session, _STATEMENTS["reencrypt_history"].sql, params)
    return int(count)


async def reencrypt_schedules(
    session: Session,
    schedules: Sequence[EncryptedSchedule],
    payloads: Sequence[str],
    *,
    declared: Sequence[str | None],
) -> int:
    """How many were changed."""
    params = {
        "schedule_ids": [schedule.id for schedule in schedules],
        "before": [schedule.payload for schedule in schedules],
        "after": list(payloads),
        "declared": list(declared),
    }
    return len(await fetch_all(session, _STATEMENTS["reencrypt_schedules"].sql, params))


def _reencrypted(jobs: Sequence[Reencrypted]) -> dict[str, Any]:
    return {
        "job_ids": [job.row.id for job in jobs],
        "before": [job.row.payload for job in jobs],
        "after": [job.after for job in jobs],
        "was_compared_by": [job.was_compared_by for job in jobs],
        "is_compared_by": [job.is_compared_by for job in jobs],
    }
