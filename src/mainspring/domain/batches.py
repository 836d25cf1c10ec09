"""How a batch gets past a row that cannot be processed.

A statement over many rows fails as a whole because of one of them. It is repeated for each half of
the rows, down to the one that fails alone; that row is set aside, and the others go on.

    1 2 3 4 5 6 7 8   fails
    1 2 3 4 │ 5 6 7 8   the first half passes, the second fails
              5 6 │ 7 8   ...
                    7 │ 8   8 fails alone: it is set aside
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_FIRST_PAUSE = timedelta(seconds=30)
_LONGEST_PAUSE = timedelta(hours=6)
_MOST_DOUBLINGS = 11


class Aside(NamedTuple):
    """A row that a duty leaves out for a while; the key is the id of its job."""

    duty: str
    key: int
    tries: int
    seconds_left: float
    reason: str


def halves(rows: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The two halves of at least two rows, in order."""
    middle = len(rows) // 2
    return rows[:middle], rows[middle:]


# How long a row is set aside by how often it has failed alone; the last for all that follow. One
# that someone holds is tried again soon: nothing is wrong with it.
LOCKED_PAUSES = (_FIRST_PAUSE,)
PAUSES = tuple(min(_FIRST_PAUSE * 2**tries, _LONGEST_PAUSE) for tries in range(_MOST_DOUBLINGS))
