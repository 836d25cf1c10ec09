"""Jobs that have failed, with their attempts, counted by error."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from mainspring.domain.types import JobState
from tests.support.rows import insert, insert_attempt, insert_job

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def fail(connection: psycopg.Connection, key: str, jobs: int = 1, **columns: Any) -> list[int]:
    """Jobs that failed with an error, once each, and are counted."""
    tenant = columns.get("tenant_id", "default")
    owner = {"created_by": columns.pop("created_by", None), "tenant_id": tenant}
    job_ids = []
    for _ in range(jobs):
        job_id = insert_job(connection, JobState.FAILED, attempt=1, created_at=NOW - DAY, **owner)
        insert_attempt(connection, job_id, finished_at=NOW, error_key=key)
        job_ids.append(job_id)
    row = {
        "at": NOW,
        "tenant_id": tenant,
        "queue": "default",
        "definition": "work",
        "error_key": key,
        "sample": f"{key}: broken",
        "count": jobs,
        "job_ids": job_ids[-5:],
    }
    insert(connection, "failures", **{**row, **columns})
    connection.execute("select mainspring.fold_failures(1000)")
    return job_ids
