"""Statements for those who watch many jobs at once."""

from collections.abc import Sequence
from typing import NamedTuple

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session, fetch_mappings
from mainspring.db.statements import load
from mainspring.domain.jobs.model import WatchedJob
from mainspring.domain.types import JobId
from mainspring.store.rows.jobs import read_watched

_STATEMENTS = load("streams")


class Output(NamedTuple):
    """What an attempt has printed, as far as it is kept."""

    stdout_tail: str | None
    stderr_tail: str | None


async def versions(session: Session, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    """Which version each live job is at."""
    cursor = await session.execute(
        _STATEMENTS["watch_jobs"].sql, {"job_ids": IntegerArray(job_ids)}
    )
    return {JobId(job_id): version for job_id, version in await cursor.fetchall()}


async def load_jobs(
    session: Session, job_ids: Sequence[JobId], *, most_bytes: int
) -> list[WatchedJob]:
    """With results of up to so many bytes."""
    params = {"job_ids": IntegerArray(job_ids), "most_bytes": most_bytes}
    rows = await fetch_mappings(session, _STATEMENTS["load_jobs"].sql, params)
    return [read_watched(row) for row in rows]


async def load_outputs(session: Session, job_ids: Sequence[JobId]) -> dict[JobId, Output]:
    cursor = await session.execute(
        _STATEMENTS["load_outputs"].sql, {"job_ids": IntegerArray(job_ids)}
    )
    return {JobId(row[0]): Output(row[1], row[2]) for row in await cursor.fetchall()}
