"""Jobs of workers whose lease has run out: found, and taken back."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.types import JobId, WorkerId

_STATEMENTS = load("recovery")


class LostJob(NamedTuple):
    """A job taken back from a dead worker, or ended because it runs at most once and has begun."""

    job_id: JobId
    worker_id: WorkerId
    is_parked: bool
    is_ended: bool = False


async def adopt_orphans(session: Session) -> list[WorkerId]:
    """Make jobs recoverable that a worker holds which is unknown or done with; the workers found.
    There may be more."""
    cursor = await session.execute(_STATEMENTS["adopt_orphans"].sql)
    return [WorkerId(row[0]) for row in await cursor.fetchall()]


async def recover(
    session: Session,
    chosen: Sequence[int] | None = None,
    *,
    max_losses: int,
    jitter: timedelta,
    limit: int = 1000,
) -> list[LostJob]:
    """Take back the jobs of workers whose lease ran out, or the chosen ones of them."""
    cursor = await session.execute(
        _STATEMENTS["recover"].sql,
        {
            "now": None,
            "max_losses": max_losses,
            "jitter": jitter,
            "limit": limit,
            "chosen": None if chosen is None else list(chosen),
        },
    )
    return [LostJob(*row) for row in await cursor.fetchall()]


async def note_survivor(session: Session, worker_id: WorkerId) -> None:
    """What was taken back from a worker whose lease ran out has not killed it."""
    params = {"worker_id": worker_id}
    await session.execute(_STATEMENTS["note_survivor"].sql, params)
    # In a statement of its own, which sees whatever the one before has waited for.
    await session.execute(_STATEMENTS["clear_suspicions"].sql, params)


async def find_lost(session: Session, *, limit: int = 1000) -> list[int]:
    """The jobs that `recover` would take back."""
    params = {"now": None, "limit": limit}
    cursor = await session.execute(_STATEMENTS["find_lost"].sql, params)
    return [job_id for (job_id,) in await cursor.fetchall()]
