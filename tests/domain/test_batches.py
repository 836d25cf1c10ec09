"""How a failing batch is divided, and how long a row is set aside."""

from datetime import timedelta
from itertools import pairwise

import pytest

from mainspring.domain.batches import PAUSES, halves


@pytest.mark.parametrize("size", [2, 3, 8, 9])
def test_both_halves_are_smaller_and_nothing_is_lost(size):
    first, second = halves(range(size))

    assert [*first, *second] == list(range(size))
    assert 0 < len(first) <= len(second) < size


def test_a_row_is_set_aside_for_longer_each_time_up_to_some_hours():
    assert PAUSES[0] == timedelta(seconds=30)
    assert all(before < after for before, after in pairwise(PAUSES))
    assert PAUSES[-1] == timedelta(hours=6)
