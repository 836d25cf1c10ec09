"""Sweeps: a claimer looks for lanes with ready jobs; `domain/claiming/lanes.py` has the rules."""

import time
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from mainspring.domain.claiming.lanes import Lane, LaneBook, ReadyLane
from mainspring.store import attempts
from mainspring.store import lanes as store


async def restore(connection: AsyncConnection[Any], lanes: LaneBook, queues: Sequence[str]) -> None:
    """Begin with the floors that other workers have noted."""
    lanes.restore(*await store.read_floors(connection, queues=queues))


async def sweep(
    connection: AsyncConnection[Any],
    queues: Sequence[str],
    floors: Sequence[tuple[Lane, int]] | None,
) -> tuple[list[ReadyLane], float]:
    """The lanes with ready jobs, above the floors only if these are given, and how many seconds
    that took; waiting for the database to come back is no cost."""
    began_at = time.monotonic()
    if floors is not None:
        found = await store.discover_above(connection, queues, floors)
    else:
        found = await attempts.discover(connection, queues)
    return found, time.monotonic() - began_at
