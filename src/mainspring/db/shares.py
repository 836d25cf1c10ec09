"""Places that tenants share: nobody takes so many that nothing is left for the others.

    tenant A ── line ──┐
    tenant B ── line ──┼── in turn ──▶ the next place that is free
    tenant C ── line ──┘

A tenant gets a place while it holds fewer than are free. One alone thus holds half of them at most,
two a third each, and whoever holds none is served before all who hold some. Switches divide their
buffers among ports by the same rule: "dynamic thresholds", Choudhury and Hahne, 1998.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable


class Shares:
    """So many places, inside one event loop; who waits longer than `wait_seconds` for one gets
    TimeoutError."""

    def __init__(self, size: int, *, wait_seconds: float | None = None) -> None:
        self._free = size
        self._wait_seconds = wait_seconds
        self._held: Counter[Hashable] = Counter()
        self._lines: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def take(self, who: Hashable) -> None:
        """Waits, behind others of the same tenant, until there is a place; give it back."""
        if who not in self._lines and self._is_entitled(who):
            self._count(who)
            return
        waiting = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(waiting)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await waiting
        except (TimeoutError, asyncio.CancelledError):
            if waiting.cancelled():
                self._leave(who, waiting)
            else:  # Served at the very moment.
                self.give_back(who)
            raise

    def give_back(self, who: Hashable) -> None:
        self._free += 1
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
        self._serve()

    def _is_entitled(self, who: Hashable) -> bool:
        return self._held[who] < self._free

    def _count(self, who: Hashable) -> None:
        self._free -= 1
        self._held[who] += 1

    def _serve(self) -> None:
        while (who := next(filter(self._is_entitled, self._lines), None)) is not None:
            line = self._lines.pop(who)
            waiting = line.popleft()
            if line:  # Behind the lines of the others.
                self._lines[who] = line
            if not waiting.done():
                self._count(who)
                waiting.set_result(None)

    def _leave(self, who: Hashable, waiting: asyncio.Future[None]) -> None:
        line = self._lines.get(who)
        if line is not None and waiting in line:
            line.remove(waiting)
            if not line:
                del self._lines[who]
