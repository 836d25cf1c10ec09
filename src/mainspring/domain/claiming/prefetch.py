"""How many jobs a worker claims ahead of a free place.

Claiming one job at a time makes the round trip the limit; claiming many ahead of slow
handlers keeps jobs from workers that are idle. So a worker claims ahead only what it will
start within a tenth of a second at the rate it has been finishing.
"""

from dataclasses import dataclass

_HORIZON = 0.1
_WINDOW = 0.02
_SMOOTHING = 0.5


@dataclass(slots=True)
class PrefetchRate:
    """The rate at which a worker finishes, smoothed over windows of 20 ms."""

    most: int
    rate: float = 0.0
    window_began: float = 0.0
    counted: int = 0

    def finished(self, count: int, now: float) -> None:
        """Count jobs that were finished by the monotonic instant `now`."""
        self.counted += count
        elapsed = now - self.window_began
        if elapsed < _WINDOW:
            return
        measured = self.counted / elapsed
        self.rate += (measured - self.rate) * (_SMOOTHING if measured < self.rate else 1.0)
        self.window_began, self.counted = now, 0

    def ahead(self) -> int:
        """How many jobs may wait in the buffer."""
        return min(self.most, int(self.rate * _HORIZON))

    def stall(self) -> None:
        """Forget the rate: what was claimed ahead did not get to start."""
        self.rate = 0.0
