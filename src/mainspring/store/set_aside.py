"""Statements on rows that are set aside."""

from collections.abc import Sequence
from datetime import timedelta

from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.batches import Aside

_STATEMENTS = load("set_aside")
_BATCH = 1000


async def put(
    session: Session, duty: str, key: int, *, reason: str, pauses: Sequence[timedelta]
) -> int:
    """How often the row was set aside; `pauses` says for how long, by that number."""
    params = {"duty": duty, "key": key, "reason": reason, "pauses": list(pauses)}
    cursor = await session.execute(_STATEMENTS["put_aside"].sql, params)
    (row,) = await cursor.fetchall()
    return int(row[0])


async def put_off(session: Session, duty: str, key: int) -> None:
    """Let a ready job wait for as long as the duty has set it aside."""
    await session.execute(_STATEMENTS["put_off"].sql, {"duty": duty, "key": key})


async def list_aside(session: Session, limit: int = 20) -> list[Aside]:
    """The newest first."""
    cursor = await session.execute(_STATEMENTS["list_aside"].sql, {"limit": limit})
    return [Aside(*row) for row in await cursor.fetchall()]


async def prune(session: Session) -> bool:
    """Whether there may be more to prune."""
    cursor = await session.execute(_STATEMENTS["prune_aside"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH
