"""Statements on history: its partitions and what is pruned."""

from mainspring.db.sessions import Session
from mainspring.db.statements import load

_STATEMENTS = load("history")


async def ensure_partitions(session: Session, days_ahead: int = 7) -> None:
    await session.execute(_STATEMENTS["ensure_partitions"].sql, {"days_ahead": days_ahead})


async def drop_partitions(session: Session) -> int:
    """How many day partitions were dropped."""
    cursor = await session.execute(_STATEMENTS["drop_partitions"].sql)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def prune_jobs(session: Session, limit: int = 5000) -> int:
    """How many finished jobs were removed; call again while it is the limit."""
    cursor = await session.execute(_STATEMENTS["prune_jobs"].sql, {"limit": limit})
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def prune_keys(session: Session, limit: int = 5000) -> int:
    """How many expired keys were removed; call again while it is the limit."""
    cursor = await session.execute(_STATEMENTS["prune_keys"].sql, {"limit": limit})
    return cursor.rowcount
