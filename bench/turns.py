"""Two figures of which one is judged by the other, taken in turns.

A machine can be half as fast again from one minute to the next, which a single pair would show as
a difference between the two. So they are taken in the order with, without, without, with, then the
other way round, and so on: whatever changes steadily meanwhile falls on both alike.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

_ORDER: Final = (False, True, True, False, True, False, False, True)

Rate = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """The mean of the subject and that of what it is judged by."""

    subject: float
    without: float

    @property
    def ratio(self) -> float:
        return self.subject / self.without


def in_turns(subject: Rate, without: Rate, *, each: int) -> Pair:
    """Each so many times, which is an even number."""
    rates: tuple[list[float], list[float]] = [], []
    for is_without in islice(cycle(_ORDER), 2 * each):
        rates[is_without].append(without() if is_without else subject())
    return Pair(*map(statistics.mean, rates))
