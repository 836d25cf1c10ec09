"""Log lines about jobs of which only the id is at hand."""

from typing import Any

import psycopg

from mainspring import telemetry
from mainspring.db.sessions import Session
from mainspring.store import job_names


async def log_about(session: Session, event: str, job_id: int, **facts: Any) -> None:
    """Log an event with what is known of the job; never raises because of that."""
    try:
        named = await job_names.name_jobs(session, [job_id])
    except psycopg.Error:
        named = {}
    telemetry.event(event, **{**named.get(job_id, {"job_id": job_id}), **facts})
