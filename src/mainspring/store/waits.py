"""Statements on waits: what ends one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import Lane

_STATEMENTS = load("waits")
BATCH = 1000


class Released(NamedTuple):
    """A job that waits no longer for what it did, but may have to for its limit."""

    priority: int
    tenant_id: str
    queue: str
    job_id: int
    is_limited: bool

    @property
    def lane(self) -> Lane:
        return Lane(self.priority, self.tenant_id, self.queue)


async def promote(
    session: Session, chosen: Sequence[int] | None = None, *, limit: int = BATCH
) -> list[Released]:
    """The jobs whose instant had come, or those of the chosen ones."""
    params = {"now": None, "limit": limit, "chosen": _array(chosen)}
    cursor = await session.execute(_STATEMENTS["promote"].sql, params)
    return [Released(*row) for row in await cursor.fetchall()]


async def find_due(session: Session, *, limit: int = BATCH) -> list[int]:
    """The jobs that `promote` would move."""
    return await _find(session, _STATEMENTS["find_due"].sql, {"now": None, "limit": limit})


async def next_due(session: Session) -> float | None:
    """Seconds until the earliest waiting job is due."""
    cursor = await session.execute(_STATEMENTS["next_due"].sql)
    row = await cursor.fetchone()
    return row[0] if row else None


async def release_known(
    session: Session,
    definitions: Sequence[str],
    kinds: Sequence[str],
    *,
    chosen: Sequence[int] | None = None,
) -> list[Released]:
    """The jobs that waited for a worker who knows their definition, or its kind."""
    params = {
        "definitions": list(definitions),
        "kinds": list(kinds),
        "limit": BATCH,
        "chosen": _array(chosen),
    }
    cursor = await session.execute(_STATEMENTS["release_known"].sql, params)
    return [Released(*row) for row in await cursor.fetchall()]


async def find_known(
    session: Session, definitions: Sequence[str], kinds: Sequence[str]
) -> list[int]:
    """The jobs that `release_known` would move."""
    params = {"definitions": list(definitions), "kinds": list(kinds), "limit": BATCH}
    return await _find(session, _STATEMENTS["find_known"].sql, params)


async def expire(session: Session, chosen: Sequence[int] | None = None) -> list[int]:
    """The jobs that were canceled because their deadline passed."""
    params = {"now": None, "limit": BATCH, "chosen": _array(chosen)}
    return await _find(session, _STATEMENTS["expire"].sql, params)


async def find_late(session: Session) -> list[int]:
    """The jobs that `expire` would cancel."""
    return await _find(session, _STATEMENTS["find_late"].sql, {"now": None, "limit": BATCH})


async def settle_cancels(session: Session, chosen: Sequence[int] | None = None) -> list[bool]:
    """One for each job that had been asked to cancel: whether it was ended."""
    params = {"limit": BATCH, "chosen": _array(chosen)}
    cursor = await session.execute(_STATEMENTS["settle_cancels"].sql, params)
    return [is_ended for (is_ended,) in await cursor.fetchall()]


async def find_canceled(session: Session) -> list[int]:
    """The jobs that `settle_cancels` would end."""
    return await _find(session, _STATEMENTS["find_canceled"].sql, {"limit": BATCH})


async def _find(session: Session, sql: str, params: Mapping[str, object]) -> list[int]:
    cursor = await session.execute(sql, params)
    return [job_id for (job_id,) in await cursor.fetchall()]


def _array(chosen: Sequence[int] | None) -> IntegerArray | None:
    return None if chosen is None else IntegerArray(chosen)


async def promote_next(session: Session, queue: str | None = None) -> bool:
    """Whether a job waited for its time; the first of them no longer does."""
    cursor = await session.execute(_STATEMENTS["promote_next"].sql, {"queue": queue})
    return await cursor.fetchone() is not None


async def ready_queues(session: Session) -> list[str]:
    """The queues that hold ready jobs."""
    cursor = await session.execute(_STATEMENTS["ready_queues"].sql)
    return [row[0] for row in await cursor.fetchall()]
