"""Conditions: what an answer of the database means, and the memory of a gauge."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.conditions import (
    GaugeBounds,
    Reading,
    Run,
    Skip,
    is_met,
    read_gauge,
)

NOT_NUMBERS = ["", "t", "12", b"12", [], [1], {}, timedelta(1), datetime(2026, 1, 1, tzinfo=UTC)]
NANS = [float("nan"), Decimal("NaN")]


def gauge(
    answer: object, *, was_high: bool = False, bounds: GaugeBounds = GaugeBounds.INCLUSIVE
) -> Run | Skip:
    return read_gauge(answer, lower=10, upper=20, was_high=was_high, bounds=bounds)


@pytest.mark.parametrize("answer", [True, 1, -1, 0.5, float("inf"), Decimal("0.01"), 2**63])
def test_true_and_any_number_but_zero_mean_yes(answer):
    assert is_met(answer)


@pytest.mark.parametrize("answer", [None, False, 0, 0.0, -0.0, Decimal(0)])
def test_false_zero_and_nothing_mean_no(answer):
    assert not is_met(answer)


@pytest.mark.parametrize("answer", [*NOT_NUMBERS, *NANS])
def test_a_condition_that_answers_anything_else_is_refused(answer):
    with pytest.raises(InvalidSchedule, match="must return a boolean or a number") as refused:
        is_met(answer)

    assert refused.value.field == "condition_sql"
    assert type(answer).__name__ in refused.value.problem


def test_a_long_answer_is_quoted_in_part():
    with pytest.raises(InvalidSchedule) as refused:
        is_met("x" * 10_000)

    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("was_high", [False, True])
@pytest.mark.parametrize("answer", [20, 20.0, Decimal(20), 21, 1e300, float("inf")])
def test_a_gauge_is_high_from_the_upper_threshold_on(answer, was_high):
    assert gauge(answer, was_high=was_high) == Run(gauge=Reading(float(answer), is_high=True))


@pytest.mark.parametrize("was_high", [False, True])
@pytest.mark.parametrize("answer", [10, 10.0, Decimal(10), 9, -1, 0, float("-inf")])
def test_a_gauge_is_low_from_the_lower_threshold_down(answer, was_high):
    found = gauge(answer, was_high=was_high)

    reading = Reading(float(answer), is_high=False)
    assert found == Skip(f"{answer:g} is not above 10", reading)


@pytest.mark.parametrize("answer", [10.001, 15, Decimal("19.999")])
def test_a_gauge_between_its_thresholds_is_what_it_was(answer):
    value = float(answer)
    assert gauge(answer, was_high=True) == Run(gauge=Reading(value, is_high=True))
    low = gauge(answer, was_high=False)
    assert low == Skip(f"{value:g} has not reached 20", Reading(value, is_high=False))


def test_a_gauge_remembers_from_check_to_check():
    """It runs from 25 on, and again below 20, until it was at 8; then not before 20."""
    is_high, ran = False, []
    for answer in (15, 25, 15, 11, 8, 15, 19, 20):
        found = gauge(answer, was_high=is_high)
        ran.append(isinstance(found, Run))
        is_high = found.gauge is not None and found.gauge.is_high

    assert ran == [False, True, True, True, False, False, False, True]


@pytest.mark.parametrize("was_high", [False, True])
@pytest.mark.parametrize(("answer", "is_high"), [(20.001, True), (9.999, False)])
def test_with_exclusive_bounds_a_gauge_must_be_beyond_them(answer, is_high, was_high):
    found = gauge(answer, was_high=was_high, bounds=GaugeBounds.EXCLUSIVE)

    assert found.gauge == Reading(answer, is_high=is_high)
    assert isinstance(found, Run) is is_high


@pytest.mark.parametrize("answer", [10, 20])
def test_with_exclusive_bounds_a_gauge_at_one_of_them_is_what_it_was(answer):
    high = gauge(answer, was_high=True, bounds=GaugeBounds.EXCLUSIVE)
    low = gauge(answer, was_high=False, bounds=GaugeBounds.EXCLUSIVE)

    assert high == Run(gauge=Reading(answer, is_high=True))
    assert low == Skip(f"{answer} is not above 20", Reading(answer, is_high=False))


def test_thresholds_that_are_equal_are_one_line():
    assert read_gauge(5, lower=5, upper=5, was_high=False) == Run(gauge=Reading(5, is_high=True))
    assert isinstance(read_gauge(4.99, lower=5, upper=5, was_high=True), Skip)


@pytest.mark.parametrize("answer", [None, *NOT_NUMBERS, *NANS])
def test_a_gauge_that_answers_no_number_is_refused(answer):
    with pytest.raises(InvalidSchedule, match="it must return one number") as refused:
        gauge(answer, was_high=True)

    assert refused.value.field == "gauge_sql"


def test_a_gauge_that_answers_nothing_is_told_so():
    with pytest.raises(InvalidSchedule, match="returned nothing;"):
        gauge(None)
