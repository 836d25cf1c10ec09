"""Removes audit entries, slots and events whose retention has passed, as history.py does jobs.

How far each period was looked at is remembered by the process alone: one that starts looks at all
there is once, in short statements.
"""

from datetime import timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from mainspring.domain.pruning import PruneWindow, WindowWidth
from mainspring.domain.retention import RetentionKind
from mainspring.runtime.maintenance.pruning import RunAction, WindowParts, bounded
from mainspring.store import retention

BATCH: Final = 1000
_LOOK_AGAIN = timedelta(days=1)


class RecordPruner:
    """Removes what is past its retention, of one kind. `fallback` applies without a policy for
    everyone; None keeps the records for ever."""

    def __init__(
        self,
        run: RunAction,
        kind: RetentionKind,
        *,
        fallback: timedelta | None = None,
        batch: int = BATCH,
    ) -> None:
        self._run, self._kind, self._fallback, self._batch = run, kind, fallback, batch
        self._width = WindowWidth()
        self._done: dict[str, PruneWindow] = {}

    async def prune(self) -> int:
        """How many records were removed; raises CleanupTaken if another process removes some."""
        windows = await self._run(lambda c: retention.windows(c, self._kind, self._fallback))
        removed = 0
        for window in windows:
            removed += await self._parts().remove(self._continued(window))
        self._done = {
            window.keep: self._done[window.keep] for window in windows if window.keep in self._done
        }
        return removed

    def _parts(self) -> WindowParts:
        return WindowParts(self._width, limit=self._batch, prune=self._prune, done=self._note)

    def _continued(self, window: PruneWindow) -> PruneWindow:
        """The window without what was looked at lately, under the same policies."""
        done = self._done.get(window.keep)
        if done is None or done.policies != window.policies:
            return window
        if window.swept_at - done.swept_at >= _LOOK_AGAIN:
            return window
        return window._replace(after=done.before, swept_at=done.swept_at)

    async def _prune(self, window: PruneWindow) -> int:
        async def prune(connection: AsyncConnection[Any]) -> int:
            return await retention.prune(
                connection, self._kind, window, fallback=self._fallback, limit=self._batch
            )

        lock = f"mainspring.prune_{self._kind}"
        return await self._run(lambda c: bounded(c, prune, lock=lock))

    async def _note(self, window: PruneWindow) -> None:
        self._done[window.keep] = window
