"""Backoff: exact, given the random number."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.backoff import Backoff

SECOND = timedelta(seconds=1)


def none() -> float:
    return 0.0


def half() -> float:
    return 0.5


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 5), (1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (8, 300)]
)
def test_the_default_doubles_from_five_seconds_up_to_five_minutes(failures, seconds):
    assert Backoff().delay(failures, none) == timedelta(seconds=seconds)


def test_the_jitter_is_a_share_of_a_second_on_top_even_of_the_cap():
    assert Backoff().delay(1, half) == timedelta(seconds=5.5)
    assert Backoff().delay(100, half) == timedelta(seconds=300.5)


def test_everything_can_be_chosen():
    backoff = Backoff(base=SECOND, factor=3, cap=10 * SECOND, jitter=timedelta(0))

    assert [backoff.delay(n, half) / SECOND for n in (1, 2, 3, 4)] == [1, 3, 9, 10]


def test_a_million_failures_overflow_nothing():
    backoff = Backoff(base=SECOND, factor=1e9, cap=timedelta(hours=1), jitter=timedelta(0))

    assert backoff.delay(1_000_000, none) == timedelta(hours=1)


def test_a_backoff_of_zero_retries_at_once():
    assert Backoff(timedelta(0), jitter=timedelta(0)).delay(5, half) == timedelta(0)


@pytest.mark.parametrize("name", ["base", "cap", "jitter"])
def test_a_duration_is_from_zero_to_a_hundred_years(name):
    def with_duration(value: Any) -> Backoff:
        return Backoff(**{name: value})

    with_duration(timedelta(0))
    with pytest.raises(InvalidOption, match=f"backoff {name} must not be negative"):
        with_duration(-timedelta(microseconds=1))
    with pytest.raises(InvalidOption, match=f"backoff {name} must be at most 36500 days"):
        with_duration(timedelta.max)


def test_a_factor_below_one_is_refused_and_one_is_not():
    assert Backoff(factor=1, jitter=timedelta(0)).delay(9, none) == 5 * SECOND
    with pytest.raises(InvalidOption, match=r"backoff factor must be at least 1, not 0\.99"):
        Backoff(factor=0.99)
