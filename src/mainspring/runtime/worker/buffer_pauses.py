"""Pauses of the buffer: what waits there stands back while newcomers are claimed."""

import asyncio
import time

from mainspring.runtime.worker.buffer import Buffer
from mainspring.runtime.worker.runners import Runners

# Keeping back what could start costs time; this often it may, and for so long.
_EVERY = 0.1
_LONGEST = 0.25


class BufferPauses:
    """Pauses one worker's buffer, neither often nor for long."""

    def __init__(self, buffer: Buffer, runners: Runners) -> None:
        self._buffer, self._runners = buffer, runners
        self._paused_at = float("-inf")

    def begin(self) -> None:
        now = time.monotonic()
        if self._buffer.is_paused or now < self._paused_at + _EVERY:
            return
        self._paused_at = now
        self._buffer.pause()
        # The database may be away; jobs that are here need not wait for it.
        asyncio.get_running_loop().call_later(_LONGEST, self._end_of, now)

    def end(self) -> None:
        if self._buffer.is_paused:
            self._buffer.resume()
            self._runners.start()

    def _end_of(self, paused_at: float) -> None:
        if self._paused_at == paused_at:
            self.end()
