"""Statements for those who watch many jobs at once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from mainspring.db.arrays import IntegerArray
from mainspring.db.statements import load
from mainspring.domain.jobs.model import Job
from mainspring.domain.types import JobId
from mainspring.store.jobs import read_job

_STATEMENTS = load("streams")


class Output(NamedTuple):
    """What an attempt has printed, as far as it is kept."""

    stdout_tail: str | None
    stderr_tail: str | None


async def versions(connection: AsyncConnection[Any], job_ids: Sequence[JobId]) -> dict[JobId, str]:
    """Which version each live job is at."""
    cursor = await connection.execute(
        _STATEMENTS["watch_jobs"].sql, {"job_ids": IntegerArray(job_ids)}
    )
    return {JobId(job_id): version for job_id, version in await cursor.fetchall()}


async def load_jobs(connection: AsyncConnection[Any], job_ids: Sequence[JobId]) -> list[Job]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_STATEMENTS["load_jobs"].sql, {"job_ids": IntegerArray(job_ids)})
        return [read_job(row) for row in await cursor.fetchall()]


async def load_outputs(
    connection: AsyncConnection[Any], job_ids: Sequence[JobId]
) -> dict[JobId, Output]:
    cursor = await connection.execute(
        _STATEMENTS["load_outputs"].sql, {"job_ids": IntegerArray(job_ids)}
    )
    return {JobId(row[0]): Output(row[1], row[2]) for row in await cursor.fetchall()}
