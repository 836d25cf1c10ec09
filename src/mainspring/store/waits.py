"""Statements on the waiting rooms: what ends a wait."""

from collections.abc import Sequence
from typing import NamedTuple

from mainspring.db.sessions import Session
from mainspring.db.statements import load

_STATEMENTS = load("waits")
_BATCH = 1000


class Released(NamedTuple):
    """A job that waits no longer for what it did, but may have to for its limit."""

    queue: str
    is_limited: bool


async def promote(session: Session) -> list[Released]:
    """The jobs whose instant had come."""
    cursor = await session.execute(_STATEMENTS["promote"].sql, {"now": None, "limit": _BATCH})
    return [Released(*row) for row in await cursor.fetchall()]


async def next_due(session: Session) -> float | None:
    """Seconds until the earliest waiting job is due."""
    cursor = await session.execute(_STATEMENTS["next_due"].sql)
    row = await cursor.fetchone()
    return row[0] if row else None


async def release_known(
    session: Session, definitions: Sequence[str], kinds: Sequence[str]
) -> list[Released]:
    """The jobs that waited for a worker who knows their definition, or its kind."""
    params = {"definitions": list(definitions), "kinds": list(kinds), "limit": _BATCH}
    cursor = await session.execute(_STATEMENTS["release_known"].sql, params)
    return [Released(*row) for row in await cursor.fetchall()]


async def expire(session: Session) -> int:
    """How many jobs were canceled because their deadline passed."""
    cursor = await session.execute(_STATEMENTS["expire"].sql, {"now": None, "limit": _BATCH})
    return cursor.rowcount


async def settle_cancels(session: Session) -> int:
    """How many jobs that had been asked to cancel were ended."""
    cursor = await session.execute(_STATEMENTS["settle_cancels"].sql, {"limit": _BATCH})
    return cursor.rowcount


async def promote_next(session: Session, queue: str | None = None) -> bool:
    """Whether a job waited for its time; the first of them no longer does."""
    cursor = await session.execute(_STATEMENTS["promote_next"].sql, {"queue": queue})
    return await cursor.fetchone() is not None


async def ready_queues(session: Session) -> list[str]:
    """The queues that hold ready jobs."""
    cursor = await session.execute(_STATEMENTS["ready_queues"].sql)
    return [row[0] for row in await cursor.fetchall()]
