"""Two figures of which one is judged by the other, taken in turns.

A machine can be half as fast again from one minute to the next, which a single pair would show as
a difference between the two. So each is taken twice, in the order with, without, without, with:
whatever changes steadily meanwhile falls on both alike.
"""

import statistics
from collections.abc import Callable

Rate = Callable[[], float]


def in_turns(subject: Rate, without: Rate) -> tuple[float, float]:
    """The mean of the subject and that of what it is judged by."""
    first, second, third, last = subject(), without(), without(), subject()
    return statistics.mean((first, last)), statistics.mean((second, third))
