"""When a failed attempt is tried again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import LONGEST_DELAY

# Their power is a number that a float can hold.
_LARGEST_FACTOR = 1_000_000_000
_LARGEST_EXPONENT = 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """Bounded exponential backoff: `base`, times `factor` after each further failure, at most
    `cap`, plus a random time of up to `jitter`."""

    base: timedelta = timedelta(seconds=5)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=5)
    jitter: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        for name in ("base", "cap", "jitter"):
            ensure_delay(f"backoff {name}", getattr(self, name))
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | float):
            raise InvalidOption("backoff factor", f"must be a number, not {self.factor!r}")
        if not self.factor >= 1:
            raise InvalidOption("backoff factor", f"must be at least 1, not {self.factor}")
        if self.factor > _LARGEST_FACTOR:
            raise InvalidOption(
                "backoff factor", f"must be at most {_LARGEST_FACTOR:,}, not {self.factor}"
            )

    def delay(self, failures: int, random: Callable[[], float]) -> timedelta:
        """The wait after the given number of failures; `random` gives a value in [0, 1)."""
        exponent = min(max(failures - 1, 0), _LARGEST_EXPONENT)
        seconds = min(self.base.total_seconds() * self.factor**exponent, self.cap.total_seconds())
        return timedelta(seconds=seconds + random() * self.jitter.total_seconds())


def ensure_delay(option: str, delay: timedelta) -> None:
    if not isinstance(delay, timedelta):
        raise InvalidOption(option, f"must be a timedelta, not {type(delay).__name__}")
    if delay < timedelta(0):
        raise InvalidOption(option, f"must not be negative, not {delay}")
    if delay > LONGEST_DELAY:
        raise InvalidOption(option, f"must be at most {LONGEST_DELAY.days} days")
