"""Figures: buckets and quantiles, how often to look, and which steps make up a range."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidOption
from mainspring.domain.figures import (
    Durations,
    Part,
    Range,
    Step,
    bucket_of,
    quantile,
    read_span,
    rest_after,
)

NOW = datetime(2026, 3, 4, 12, 34, 56, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(1, 0), (1.0001, 1), (2, 8), (0.5, -8), (0, bucket_of(1e-6))]
)
def test_a_bucket_ends_at_a_power_of_the_eighth_root_of_two(seconds, bucket):
    assert bucket_of(seconds) == bucket


@given(
    st.lists(st.floats(0.001, 100_000), min_size=1, max_size=300),
    st.sampled_from([0.5, 0.95, 0.99]),
)
def test_a_quantile_is_off_by_less_than_a_twentieth(seconds, share):
    buckets = [(bucket_of(each), 1) for each in seconds]
    exact = sorted(seconds)[math.floor(share * (len(seconds) - 1))]

    found = quantile(buckets, share)

    assert found is not None
    assert found == pytest.approx(exact, rel=0.0445)


def test_nothing_has_no_quantile():
    assert quantile([], 0.5) is None
    assert Durations.of([], 0, 0) == Durations(0, None, None, None, None, None)


def test_no_quantile_is_above_the_longest():
    durations = Durations.of([[bucket_of(1.01), 3]], 3.03, 1.01)

    assert durations.p99 == 1.01
    assert durations.mean == pytest.approx(1.01)


@pytest.mark.parametrize(
    ("took", "rest"), [(0, 5), (0.05, 5), (0.06, 6), (1.19, 119), (1.2, 120), (60, 120)]
)
def test_a_look_takes_a_hundredth_of_the_time(took, rest):
    assert rest_after(took) == pytest.approx(rest)


# Ranges


def test_a_range_is_rounded_to_whole_points():
    found = Range.of(NOW - 2 * HOUR, NOW, span=HOUR, now=NOW)

    assert (found.start.hour, found.end.hour) == (10, 13)
    assert found.start.minute == found.end.minute == 0


def test_a_range_without_a_step_has_few_points():
    assert Range.of(NOW - HOUR, NOW, span=None, now=NOW).span == timedelta(minutes=1)
    assert Range.of(NOW - DAY, NOW, span=None, now=NOW).span == timedelta(minutes=15)
    assert Range.of(NOW - 7 * DAY, NOW, span=None, now=NOW).span == HOUR
    assert Range.of(NOW - 900 * DAY, NOW, span=None, now=NOW).span == DAY


@pytest.mark.parametrize(
    ("start", "span", "problem"),
    [
        (NOW, None, "from must be before to"),
        (NOW - 63 * DAY, HOUR, "step 1h makes more than 1,500 points; choose a longer step"),
        (NOW - 27 * HOUR, timedelta(minutes=5), "step must be 1h or longer before the last 26"),
        (NOW - DAY, timedelta(minutes=2), "step must be one of 1m, 5m, 15m, 1h, 6h, 1d"),
    ],
)
def test_a_range_without_figures_or_with_too_many_is_refused(start, span, problem):
    with pytest.raises(InvalidOption, match=problem):
        Range.of(start, NOW, span=span, now=NOW)


def test_a_step_of_another_length_is_refused_by_what_is_meant():
    assert read_span("15m") == timedelta(minutes=15)
    with pytest.raises(InvalidOption, match="not '15min'; did you mean 15m"):
        read_span("15min")


def test_a_range_is_made_of_days_then_hours_then_minutes():
    midnight = NOW.replace(hour=0, minute=0, second=0)
    hour = NOW.replace(minute=0, second=0)
    found = Range.of(NOW - 3 * DAY, NOW, span=DAY, now=NOW)

    parts = found.parts({Step.DAY: midnight, Step.HOUR: hour})

    assert parts == [
        Part(Step.DAY, midnight - 3 * DAY, midnight),
        Part(Step.HOUR, midnight, hour),
        Part(Step.MINUTE, hour, midnight + DAY),
    ]


def test_a_range_of_hours_uses_no_days_and_one_of_minutes_only_minutes():
    complete = {Step.DAY: NOW, Step.HOUR: NOW.replace(minute=0, second=0)}
    hours = Range.of(NOW - 2 * HOUR, NOW, span=HOUR, now=NOW)
    minutes = Range.of(NOW - 2 * HOUR, NOW, span=timedelta(minutes=5), now=NOW)

    assert [part.step for part in hours.parts(complete)] == [Step.HOUR, Step.MINUTE]
    assert [part.step for part in minutes.parts(complete)] == [Step.MINUTE]
    assert [part.step for part in hours.parts({})] == [Step.MINUTE]
