"""Statements on history: its partitions and what is pruned."""

from collections.abc import Sequence

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.pruning import PruneWindow

_STATEMENTS = load("history")
BATCH = 5000


async def ensure_partitions(session: Session, days_ahead: int = 7) -> int:
    """How many were made."""
    cursor = await session.execute(_STATEMENTS["ensure_partitions"].sql, {"days_ahead": days_ahead})
    ((made,),) = await cursor.fetchall()
    return int(made)


async def past_partitions(session: Session) -> list[str]:
    """The names of day partitions that are past every retention, the oldest first."""
    cursor = await session.execute(_STATEMENTS["past_partitions"].sql)
    return [name for (name,) in await cursor.fetchall()]


async def drop_partition(session: Session, name: str) -> None:
    await session.execute(_STATEMENTS["drop_partition"].sql, {"name": name})


async def windows(session: Session) -> list[PruneWindow]:
    """One for each period that jobs are kept for."""
    cursor = await session.execute(_STATEMENTS["prune_windows"].sql)
    return [PruneWindow(*row) for row in await cursor.fetchall()]


async def note_pruned(session: Session, window: PruneWindow) -> None:
    """Remember that everything before the end of the window was looked at."""
    params = {
        "keep": window.keep,
        "until": window.before,
        "swept_at": window.swept_at,
        "policies": window.policies,
    }
    await session.execute(_STATEMENTS["note_pruned"].sql, params)


async def forget_pruned(session: Session, keeps: Sequence[str]) -> None:
    """Forget all periods but these."""
    await session.execute(_STATEMENTS["forget_pruned"].sql, {"keeps": list(keeps)})


async def prune_jobs(
    session: Session,
    window: PruneWindow,
    chosen: Sequence[int] | None = None,
    *,
    limit: int = BATCH,
) -> list[int]:
    """The finished jobs that were removed, at most so many of them."""
    params = {
        "after": window.after,
        "before": window.before,
        "chosen": None if chosen is None else IntegerArray(chosen),
        "limit": limit,
    }
    cursor = await session.execute(_STATEMENTS["prune_jobs"].sql, params)
    return [job_id for (job_id,) in await cursor.fetchall()]


async def find_past_jobs(session: Session, window: PruneWindow) -> list[int]:
    """The jobs that `prune_jobs` would remove, and a few that it would keep."""
    params = {"after": window.after, "before": window.before}
    cursor = await session.execute(_STATEMENTS["find_past_jobs"].sql, params)
    return [job_id for (job_id,) in await cursor.fetchall()]


async def prune_outputs(session: Session, limit: int = BATCH) -> int:
    """How many outputs were removed; call again while it is the limit."""
    cursor = await session.execute(_STATEMENTS["prune_outputs"].sql, {"limit": limit})
    return cursor.rowcount


async def prune_keys(session: Session, limit: int = BATCH) -> int:
    """How many expired keys were removed; call again while it is the limit."""
    cursor = await session.execute(_STATEMENTS["prune_keys"].sql, {"limit": limit})
    return cursor.rowcount
