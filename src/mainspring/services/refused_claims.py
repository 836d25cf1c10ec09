"""Claims that the database refuses: the job at fault is found, and the others are claimed.

    claim ─ refused ─▶ the jobs it would take ─▶ halves ─▶ ... ─▶ one job is set aside: it waits for
                                                                  a while, and says why

An error that is worth retrying is none of these, nor is one of the statement itself, such as a
missing privilege: every claim would fail in the same way.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from mainspring import telemetry
from mainspring.domain.batches import PAUSES, halves
from mainspring.domain.claiming.lanes import Lane, Span
from mainspring.domain.sqlstates import is_locked, is_of_a_row
from mainspring.domain.types import WorkerId
from mainspring.services.job_names import log_about
from mainspring.store import attempts, set_aside

_DUTY = "claim"

LaneSpan = tuple[Lane, Span]
Rows = list[tuple[Any, ...]]


def is_of_a_job(error: psycopg.Error) -> bool:
    """Whether a claim may pass without one of its jobs."""
    return is_of_a_row(error.sqlstate) and not is_locked(error.sqlstate)


class Claim(NamedTuple):
    """What a statement is to claim: so many jobs from parts of lanes."""

    connection: AsyncConnection[Any]
    worker_id: WorkerId

    async def rows(self, parts: Sequence[LaneSpan], limit: int) -> Rows:
        """One statement; rows in the shape of ClaimedRow, in no particular order."""
        return await attempts.claim(
            self.connection,
            self.worker_id,
            [(lane, span.mark) for lane, span in parts],
            limit=limit,
            shares=[span.share for _, span in parts],
            untils=[span.until for _, span in parts],
        )

    async def rows_apart(self, parts: Sequence[LaneSpan], limit: int, cause: psycopg.Error) -> Rows:
        """The same after the statement has failed, without the jobs that make it fail. Raises the
        cause where that is no job's fault, or would have to be mended inside a transaction."""
        is_open = self.connection.info.transaction_status != TransactionStatus.IDLE
        if is_open or not is_of_a_job(cause):
            raise cause
        ready = await attempts.find_ready(self.connection, parts, limit=limit)
        if not ready:
            raise cause
        return await self._halved([(lane, Span(key - 1, key, 1)) for lane, key in ready], cause)

    async def _halved(self, jobs: Sequence[LaneSpan], cause: psycopg.Error) -> Rows:
        if len(jobs) == 1:
            await _put_off(self.connection, jobs[0][1].until, cause)
            return []
        rows: Rows = []
        for half in halves(jobs):
            try:
                rows += await self.rows(half, len(half))
            except psycopg.Error as error:
                if not is_of_a_job(error):
                    raise
                rows += await self._halved(half, error)
        return rows


async def _put_off(connection: AsyncConnection[Any], job_id: int, cause: psycopg.Error) -> None:
    reason = str(cause).strip().partition("\n")[0]
    tries = await set_aside.put(connection, _DUTY, job_id, reason=reason, pauses=PAUSES)
    seconds = PAUSES[min(tries, len(PAUSES)) - 1].total_seconds()
    facts = {"duty": _DUTY, "tries": tries, "seconds": seconds, "error": reason}
    await log_about(connection, "row_set_aside", job_id, **facts)
    try:
        await set_aside.put_off(connection, _DUTY, job_id)
    except psycopg.Error as error:
        # Then it stays ready, and each claim passes over it in this way until it is tried again.
        telemetry.event("loop_failed", loop=_DUTY, error=error)
