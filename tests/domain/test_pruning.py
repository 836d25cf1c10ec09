"""The windows in which history is pruned."""

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.domain.pruning import PruneWindow, WindowWidth

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def window(after: datetime, before: datetime) -> PruneWindow:
    return PruneWindow("7 days", after, before, NOON, "")


def test_a_window_is_empty_when_all_of_it_was_looked_at():
    assert window(NOON, NOON).is_empty
    assert not window(NOON, NOON + HOUR).is_empty


@pytest.mark.parametrize(("seconds", "ends_at"), [(60, NOON + HOUR / 60), (9999, NOON + HOUR)])
def test_a_part_is_as_long_as_asked_but_no_longer_than_the_window(seconds, ends_at):
    part = window(NOON, NOON + HOUR).first(seconds)

    assert (part.after, part.before) == (NOON, ends_at)


@pytest.mark.parametrize(("took", "factor"), [(0.09, 4), (0.3, 1), (0.6, 0.25)])
def test_a_statement_that_is_quick_makes_the_next_look_at_more_and_a_slow_one_at_less(took, factor):
    width = WindowWidth(1000.0)

    width.took(took)

    assert width.seconds == 1000.0 * factor


def test_a_width_can_be_narrowed_down_to_a_second():
    width = WindowWidth(3.0)

    assert width.narrow()
    assert width.seconds == 1.0
    assert not width.narrow()
