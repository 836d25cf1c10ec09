"""Looks: every few seconds one worker adds up what has changed beside a count of what is live.

Whoever gets the lock looks, if it is time: as often as a look that takes so long may be made. The
lock is taken by a statement of its own, so that the look sees all that the look before has done.
"""

from typing import Any

from psycopg import AsyncConnection

from mainspring.domain.figures import KEPT, Step, rest_after
from mainspring.store import figures

MOST_KEYS = 500

_MOST_COMPACTED = 24


async def look(connection: AsyncConnection[Any], *, most_keys: int = MOST_KEYS) -> int | None:
    """Look if it is time and nobody else does; how many changes there were, None without a look."""
    async with connection.transaction():
        turn = await figures.lock(connection)
        if not turn.is_ours or not _is_time(turn):
            return None
        return await figures.look(connection, most_keys=most_keys)


async def compact(connection: AsyncConnection[Any]) -> None:
    """Make hours from minutes and days from hours that are over, and remove what is old."""
    for step, source in ((Step.HOUR, Step.MINUTE), (Step.DAY, Step.HOUR)):
        async with connection.transaction():
            if not (await figures.lock(connection)).is_ours:
                return
            for _ in range(_MOST_COMPACTED):
                if not await figures.compact_next(connection, step, source):
                    break
            await figures.prune(connection, source, KEPT[source], made=step)
    async with connection.transaction():
        await figures.prune(connection, Step.DAY, KEPT[Step.DAY], made=Step.DAY)


def _is_time(turn: figures.Turn) -> bool:
    return turn.age is None or turn.took is None or turn.age >= rest_after(turn.took)
