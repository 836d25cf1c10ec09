"""How many jobs a worker runs at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sized
from contextlib import asynccontextmanager, contextmanager

_LOOK_EVERY = 0.02


class Capacity:
    """So many jobs as the concurrency says. Suspects run beside these, so that nobody waits for
    them; while one runs alone no other job begins. `on_more` is called when there is more of it."""

    def __init__(self, concurrency: int, running: Sized, on_more: Callable[[], None]) -> None:
        self.most = concurrency
        """The number of jobs below which another may begin; the runners look at it for each job."""
        self._concurrency, self._running = concurrency, running
        self._on_more = on_more
        self._beside = 0
        self._is_closed = False
        self._one_alone = asyncio.Lock()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """The running job does not count."""
        self._beside += 1
        self._update()
        try:
            yield
        finally:
            self._beside -= 1
            self._update()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nothing else runs in the worker's process. Only for a job that runs `beside`."""
        async with self._one_alone:
            self._is_closed = True
            self._update()
            try:
                while len(self._running) > self._beside:  # noqa: ASYNC110 - rare, and no event says so
                    await asyncio.sleep(_LOOK_EVERY)
                yield
            finally:
                self._is_closed = False
                self._update()

    def _update(self) -> None:
        before = self.most
        self.most = 0 if self._is_closed else self._concurrency + self._beside
        if self.most > before:
            self._on_more()
