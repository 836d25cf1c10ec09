"""What log lines call jobs of which only the id is at hand."""

from collections.abc import Collection
from typing import Any

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session
from mainspring.db.statements import load

_STATEMENTS = load("job_names")
_FIELDS = ("job_id", "tenant", "definition", "queue", "attempt", "worker", "schedule", "slot")


async def name_jobs(session: Session, job_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """The fields of log lines about the jobs; one that is gone has none."""
    params = {"job_ids": IntegerArray(list(job_ids))}
    cursor = await session.execute(_STATEMENTS["name_jobs"].sql, params)
    rows = [dict(zip(_FIELDS, row, strict=True)) for row in await cursor.fetchall()]
    return {row["job_id"]: row for row in rows}
