"""Reading ahead: what is due at the next instant is read and planned shortly before it.

So the instant itself begins with writing, on two connections at once where there is enough for
both. Nothing is decided early: the plan is for that very instant, the statement that fires finds
every schedule as it was read or leaves it alone, and fires none before the database's clock says
that it is due. Whatever the batches lack is read as usual right after them.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from mainspring.runtime.scheduler import due_batches
from mainspring.runtime.scheduler.due_batches import Batch

SECONDS = 0.25
# After that the plan may be wrong: a slot can be too late to be fired.
_KEPT_SECONDS = 1.0
_NEARLY_SECONDS = 0.005
_TIMER_SECONDS = 0.001


class Prefetch:
    """What has been read for one instant."""

    def __init__(self) -> None:
        self._instant: datetime | None = None
        self._due_at = 0.0
        self._batches: Sequence[Batch] = ()

    async def read(
        self, connection: AsyncConnection[Any], instant: datetime, *, due_at: float
    ) -> None:
        """Get ready for an instant, which comes not after `due_at` of our own clock."""
        if instant == self._instant:
            return
        batches = [await due_batches.read(connection, now=instant)]
        if batches[0].is_full:
            batches.append(await due_batches.read(connection, now=instant, skip=batches[0].size))
        # Only a set is guarded by the database's clock; whatever else there is is read again.
        batches = [Batch(batch.size, plain=batch.plain) for batch in batches if batch.plain]
        self._instant, self._due_at, self._batches = instant, due_at, batches

    async def take(self) -> Sequence[Batch]:
        """What can be written now, once; nothing before the instant, or long after it."""
        if self._instant is None:
            return ()
        rest = self._due_at - time.monotonic()
        if 0 < rest < _NEARLY_SECONDS:
            # Timers end up to a millisecond early, as the one did that brought us here.
            await asyncio.sleep(rest + _TIMER_SECONDS)
            rest = self._due_at - time.monotonic()
        if rest > 0:
            return ()
        batches = self._batches if -rest < _KEPT_SECONDS else ()
        self._instant, self._batches = None, ()
        return batches
