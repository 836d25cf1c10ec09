"""Statements on lanes that begin with many dead entries."""

from collections.abc import Sequence

from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import Lane, ReadyLane
from mainspring.domain.types import JobId

_STATEMENTS = load("lanes")

Floors = Sequence[tuple[Lane, int]]
"""Lanes, each with the last job below which hardly anything but dead entries is."""


async def discover_above(
    session: Session, queues: Sequence[str], floors: Floors
) -> list[ReadyLane]:
    """The lanes with ready jobs as `discover` finds them, but for what is below the floors."""
    lanes = _lane_arrays(floors)
    params = {**lanes, "lane_queues": lanes["queues"], "queues": list(queues)}
    cursor = await session.execute(_STATEMENTS["discover_above"].sql, params)
    return [
        ReadyLane(Lane(priority, tenant_id, queue), first, weight)
        for priority, tenant_id, queue, first, weight in await cursor.fetchall()
    ]


async def find_below(
    session: Session, floors: Floors, *, limit: int = 1000
) -> dict[Lane, list[JobId]]:
    """The ready jobs below the floors, at most so many of a lane."""
    params = {**_lane_arrays(floors), "limit": limit}
    cursor = await session.execute(_STATEMENTS["find_below"].sql, params)
    found: dict[Lane, list[JobId]] = {}
    for priority, tenant_id, queue, job_id in await cursor.fetchall():
        found.setdefault(Lane(priority, tenant_id, queue), []).append(JobId(job_id))
    return found


async def note_floors(session: Session, floors: Floors, *, seconds: float) -> None:
    """Remember the floors, and that a sweep without them takes so long."""
    params = {**_lane_arrays(floors), "seconds": seconds}
    await session.execute(_STATEMENTS["note_floors"].sql, params)


async def read_floors(session: Session, queues: Sequence[str]) -> tuple[dict[Lane, int], float]:
    """The floors that were noted lately, and how long a sweep without them takes."""
    cursor = await session.execute(_STATEMENTS["read_floors"].sql, {"queues": list(queues)})
    rows = await cursor.fetchall()
    floors = {Lane(priority, tenant, queue): floor for priority, tenant, queue, floor, _ in rows}
    return floors, max((row[-1] for row in rows), default=0.0)


async def prune_floors(session: Session) -> None:
    await session.execute(_STATEMENTS["prune_floors"].sql)


def _lane_arrays(floors: Floors) -> dict[str, object]:
    return {
        "queues": [lane.queue for lane, _ in floors],
        "priorities": [lane.priority for lane, _ in floors],
        "tenants": [lane.tenant_id for lane, _ in floors],
        "floors": [floor for _, floor in floors],
    }
