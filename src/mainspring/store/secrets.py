"""Statements on secrets: where payloads hold them, and payloads that are encrypted anew."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.secrets.paths import Path
from mainspring.domain.types import JobId, TenantId

_STATEMENTS = load("secrets")


class EncryptedJob(NamedTuple):
    """A job with encrypted values."""

    id: int
    tenant_id: TenantId
    definition: str
    payload: str


class EncryptedSchedule(NamedTuple):
    """A schedule with encrypted values; `declared` is the payload that code declared, if any."""

    id: int
    tenant_id: TenantId
    definition: str
    payload: str
    declared: str | None
    declared_definition: str | None


def paths_of_definitions(keys: Collection[str]) -> Call:
    """Each row is (key, paths as text), for `read_paths`."""
    return Call(_STATEMENTS["paths_of_definitions"].sql, {"keys": list(keys)})


def paths_of_job(tenant_id: TenantId, job_id: JobId) -> Call:
    """The row is (definition, paths as text), for `read_paths`; no row if there is no job."""
    params = {"tenant_id": tenant_id, "job_id": job_id}
    return Call(_STATEMENTS["paths_of_job"].sql, params)


def real_payload(tenant_id: TenantId, name: str) -> Call:
    """The row is (definition, payload as text); no row if there is no schedule."""
    params = {"tenant_id": tenant_id, "name": name}
    return Call(_STATEMENTS["real_payload"].sql, params)


def encrypted_jobs(after: int, limit: int) -> Call:
    """Each row is an EncryptedJob."""
    return Call(_STATEMENTS["encrypted_jobs"].sql, {"after": after, "limit": limit})


def encrypted_history(after: int, limit: int) -> Call:
    """Each row is an EncryptedJob."""
    return Call(_STATEMENTS["encrypted_history"].sql, {"after": after, "limit": limit})


def encrypted_schedules(after: int, limit: int) -> Call:
    """Each row is an EncryptedSchedule."""
    return Call(_STATEMENTS["encrypted_schedules"].sql, {"after": after, "limit": limit})


def reencrypt_jobs(jobs: Sequence[EncryptedJob], payloads: Sequence[str]) -> Call:
    """The row is (how many were changed,)."""
    return Call(_STATEMENTS["reencrypt_jobs"].sql, _reencrypted(jobs, payloads))


def reencrypt_history(jobs: Sequence[EncryptedJob], payloads: Sequence[str]) -> Call:
    """The row is (how many were changed,)."""
    return Call(_STATEMENTS["reencrypt_history"].sql, _reencrypted(jobs, payloads))


def reencrypt_schedules(
    schedules: Sequence[EncryptedSchedule], payloads: Sequence[str], declared: Sequence[str | None]
) -> Call:
    """A row for each that was changed."""
    params = {
        "schedule_ids": [schedule.id for schedule in schedules],
        "before": [schedule.payload for schedule in schedules],
        "after": list(payloads),
        "declared": list(declared),
    }
    return Call(_STATEMENTS["reencrypt_schedules"].sql, params)


def read_paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path) for path in orjson.loads(text))


def _reencrypted(jobs: Sequence[EncryptedJob], payloads: Sequence[str]) -> dict[str, Any]:
    return {
        "job_ids": [job.id for job in jobs],
        "before": [job.payload for job in jobs],
        "after": list(payloads),
    }
