"""Two figures of which one is judged by the other, taken in turns.

A machine can be half as fast again from one minute to the next, which a single pair would show as
a difference between the two. So they are taken in the order with, without, without, with, and once
more the other way round: whatever changes steadily meanwhile falls on both alike.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

Rate = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """The mean of the subject and that of what it is judged by."""

    subject: float
    without: float

    @property
    def ratio(self) -> float:
        return self.subject / self.without


def in_turns(subject: Rate, without: Rate) -> Pair:
    """Each twice; for what takes long."""
    first, second, third, last = subject(), without(), without(), subject()
    return Pair(statistics.mean((first, last)), statistics.mean((second, third)))


def in_more_turns(subject: Rate, without: Rate) -> Pair:
    """Each four times."""
    there, back = in_turns(subject, without), in_turns(without, subject)
    return Pair(
        statistics.mean((there.subject, back.without)),
        statistics.mean((there.without, back.subject)),
    )
