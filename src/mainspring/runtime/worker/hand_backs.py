"""Jobs that a worker gives back: what it does not know of, and what it has when it leaves."""

from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.domain.types import WorkerId
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.store import attempts, workers


async def hand_back_unknown(
    connection: AsyncConnection[Any],
    worker_id: WorkerId,
    known: set[int],
    *,
    speculation: SpeculativeStarts,
) -> None:
    """Return jobs that were claimed by a statement whose answer never arrived. Of those that have
    begun, the ones whose claim came to nothing are left in `speculation`."""
    found = await attempts.held_by(connection, worker_id, known - speculation.job_ids())
    begun = speculation.keep(found)
    if lost := [report for report in found if report not in begun]:
        queues = await attempts.hand_back(connection, lost)
        job_ids = telemetry.first(report.job_id for report in lost)
        facts = {"count": len(lost), "job_ids": job_ids, "queues": sorted(queues)}
        telemetry.event("lost_claims_returned", worker=worker_id, **facts)


async def leave(connection: AsyncConnection[Any], worker_id: WorkerId) -> None:
    """Give up a lease together with whatever is still claimed under it."""
    if claimed := await attempts.held_by(connection, worker_id, set()):
        await attempts.hand_back(connection, claimed)
    await workers.remove(connection, worker_id)
