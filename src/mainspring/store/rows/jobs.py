"""Jobs, and the options that every way to enqueue has."""

from collections.abc import Mapping
from typing import Any

from mainspring.domain.jobs.model import Job, Progress
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId, JobSource, JobState, TenantId, WaitsFor


def read_job(row: Mapping[str, Any]) -> Job:
    progress = row["progress"]
    return Job(
        id=JobId(row["job_id"]),
        tenant_id=TenantId(row["tenant_id"]),
        definition=row["definition"],
        queue=row["queue"],
        state=JobState(row["state"]),
        priority=row["priority"],
        payload=row["payload"],
        created_at=row["created_at"],
        scheduled_for=row["scheduled_for"],
        waits_for=WaitsFor(row["waits_for"]) if row["waits_for"] else None,
        attempt=row["attempt"],
        failures=row["failures"],
        max_attempts=row["max_attempts"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline_at=row["deadline_at"],
        cancel_requested_at=row["cancel_requested_at"],
        dedupe_key=row["dedupe_key"],
        correlation_id=row["correlation_id"],
        tags=tuple(row["tags"] or ()),
        progress=Progress(**progress) if progress else None,
        checkpoint=row["checkpoint"],
        result=row["result"],
        last_error=row["last_error"],
        created_by=row["created_by"],
        source=JobSource(row["source"]),
    )


def common_options(options: EnqueueOptions) -> dict[str, Any]:
    return {
        "tenant_id": options.tenant_id,
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "scheduled_for": options.scheduled_for,
        "delay": options.delay,
        "deadline": options.deadline,
        "correlation_id": options.correlation_id,
        "tags": list(options.tags) or None,
        "limit_key": options.limit_key,
        "approvals_needed": options.approvals_needed,
    }
