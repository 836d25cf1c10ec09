"""Measures one round trip to the database, and by it the local clock."""

import time

from mainspring.domain.processes import ClockReading, read_clock


class Stopwatch:
    """Started right before a statement is sent."""

    def __init__(self) -> None:
        self._sent_at, self._began = time.time(), time.monotonic()

    def read(self, database_at: float) -> ClockReading:
        """Called right after the answer."""
        return read_clock(
            self._sent_at, database_at=database_at, round_trip=time.monotonic() - self._began
        )
