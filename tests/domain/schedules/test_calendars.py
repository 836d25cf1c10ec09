"""Calendars: what closes a day, and where a slot goes then."""

import os
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.calendars import (
    Blackout,
    Calendar,
    WhenClosed,
    from_json,
    place,
    why_closed,
)

SOURCES = Path(__file__).parents[3] / "src"
WEEKENDS = frozenset({6, 7})
FIRST_DAY = date(2026, 1, 1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def day(text: str) -> date:
    return date.fromisoformat(text)


def blackout(start: str, end: str, label: str = "freeze") -> Calendar:
    return Calendar(blackouts=(Blackout(at(start), at(end), label),))


def printed(code: str, **variables: str) -> list[str]:
    """The lines that the code prints in a process of its own."""
    code = (
        "import sys\nfrom datetime import *\n"
        f"from mainspring.domain.schedules.calendars import *\n{code}"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCES), "PYTHONUTF8": "1"} | variables
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.splitlines()


def closed_for(first: date, days: int, **options) -> Calendar:
    start = datetime.combine(first, datetime.min.time())
    return Calendar(blackouts=(Blackout(start, start + timedelta(days=days)),), **options)


def test_an_empty_calendar_is_always_open():
    assert why_closed(Calendar(), at("2026-01-03T12:00")) is None


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        ("2026-01-02T23:59:59", None),
        ("2026-01-03T00:00", "Saturday"),
        ("2026-01-04T23:59:59", "Sunday"),
        ("2026-01-05T00:00", None),
    ],
)
def test_a_weekend_closes_saturday_and_sunday_from_midnight_to_midnight(moment, reason):
    assert why_closed(Calendar(weekends=WEEKENDS), at(moment)) == reason


def test_a_weekend_may_be_other_days():
    calendar = Calendar(weekends=frozenset({5, 6}))

    assert why_closed(calendar, at("2026-01-02T12:00")) == "Friday"
    assert why_closed(calendar, at("2026-01-04T12:00")) is None


def test_a_public_holiday_is_named_in_its_own_language_and_in_english():
    calendar = Calendar(country="DE")

    assert why_closed(calendar, at("2026-01-01T00:00")) == "Neujahr/New Year's Day (DE)"
    assert why_closed(calendar, at("2026-01-02T00:00")) is None


@pytest.mark.parametrize("country", ["US", "GB"])
def test_a_holiday_in_an_english_speaking_country_is_named_once(country):
    reason = why_closed(Calendar(country=country), at("2026-12-25T08:00"))

    assert reason == f"Christmas Day ({country})"


def test_a_holiday_observed_in_the_year_before_is_found():
    reason = why_closed(Calendar(country="US"), at("2021-12-31T08:00"))

    assert reason == "New Year's Day (observed) (US)"


def test_a_holiday_of_a_subdivision_is_free_only_there():
    epiphany = at("2026-01-06T12:00")

    assert why_closed(Calendar(country="DE"), epiphany) is None
    assert why_closed(Calendar(country="DE", subdivision="BE"), epiphany) is None
    assert why_closed(Calendar(country="DE", subdivision="BY"), epiphany) == (
        "Heilige Drei Könige/Epiphany (DE-BY)"
    )


@pytest.mark.parametrize("year", [1, 1900, 2026, 2200, 9999])
def test_any_year_can_be_asked_for_holidays(year):
    moment = datetime.combine(date(year, 6, 15), datetime.min.time())

    assert why_closed(Calendar(country="DE"), moment) is None


def test_the_name_of_a_holiday_does_not_depend_on_the_language_of_the_process():
    code = "print(why_closed(Calendar(country='DE'), datetime(2026, 1, 1)))"

    assert printed(code, LANGUAGE="uk") == ["Neujahr/New Year's Day (DE)"]


def test_the_library_of_holidays_is_loaded_only_for_a_country():
    code = """
from_json({"weekends": True}); print("holidays" in sys.modules)
from_json({"country": "DE"}); print("holidays" in sys.modules)
"""

    assert printed(code) == ["False", "True"]


def test_an_own_date_is_free_and_the_days_around_it_are_not():
    calendar = Calendar(dates=frozenset({day("2026-12-24")}))

    assert why_closed(calendar, at("2026-12-24T23:59")) == "2026-12-24 is free"
    assert why_closed(calendar, at("2026-12-23T23:59")) is None
    assert why_closed(calendar, at("2026-12-25T00:00")) is None


@pytest.mark.parametrize("text", ["2026-01-03", "2026-01-01", "2026-12-24"])
def test_a_workday_is_open_though_it_would_be_free(text):
    closed = Calendar(weekends=WEEKENDS, country="DE", dates=frozenset({day("2026-12-24")}))
    calendar = Calendar(
        weekends=WEEKENDS,
        country="DE",
        dates=closed.dates,
        workdays=frozenset({day(text)}),
    )

    assert why_closed(closed, at(text)) is not None
    assert why_closed(calendar, at(text)) is None


def test_a_workday_does_not_lift_a_blackout():
    calendar = Calendar(
        workdays=frozenset({day("2026-01-03")}),
        blackouts=(Blackout(at("2026-01-03T10:00"), at("2026-01-03T12:00")),),
    )

    assert why_closed(calendar, at("2026-01-03T11:00")) == "blackout"
    assert why_closed(calendar, at("2026-01-03T12:00")) is None


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        ("2026-12-19T23:59:59.999999", None),
        ("2026-12-20T00:00", "freeze"),
        ("2027-01-05T05:59:59.999999", "freeze"),
        ("2027-01-05T06:00", None),
    ],
)
def test_a_blackout_is_closed_from_its_start_and_open_at_its_end(moment, reason):
    assert why_closed(blackout("2026-12-20T00:00", "2027-01-05T06:00"), at(moment)) == reason


@pytest.mark.parametrize("when_closed", list(WhenClosed))
def test_an_open_moment_stays_where_it_is(when_closed):
    calendar = Calendar(weekends=WEEKENDS, when_closed=when_closed)

    assert place(calendar, at("2026-01-02T09:30")) == at("2026-01-02T09:30")


@pytest.mark.parametrize(
    ("when_closed", "placed"),
    [
        (WhenClosed.SKIP, None),
        (WhenClosed.NEXT, at("2026-01-05T09:30:15")),
        (WhenClosed.PREVIOUS, at("2026-01-02T09:30:15")),
    ],
)
def test_a_closed_moment_is_skipped_or_moved_at_the_same_wall_time(when_closed, placed):
    calendar = Calendar(weekends=WEEKENDS, when_closed=when_closed)

    assert place(calendar, at("2026-01-03T09:30:15")) == placed


def test_a_move_goes_past_every_closed_day_of_whatever_kind():
    calendar = Calendar(
        weekends=WEEKENDS,
        country="DE",
        dates=frozenset({day("2026-12-24")}),
        blackouts=(Blackout(at("2026-12-28T00:00"), at("2026-12-29T00:00")),),
        when_closed=WhenClosed.NEXT,
    )

    assert place(calendar, at("2026-12-24T02:00")) == at("2026-12-29T02:00")


@pytest.mark.parametrize(
    ("moment", "placed"),
    [("2026-05-04T09:59", "2026-05-05T09:59"), ("2026-05-04T10:00", "2026-05-06T10:00")],
)
def test_a_move_asks_whether_the_day_is_open_at_that_time(moment, placed):
    calendar = Calendar(
        blackouts=(
            Blackout(at("2026-05-04T00:00"), at("2026-05-05T00:00")),
            Blackout(at("2026-05-05T10:00"), at("2026-05-05T12:00")),
        ),
        when_closed=WhenClosed.NEXT,
    )

    assert place(calendar, at(moment)) == at(placed)


def test_a_moment_is_moved_366_days_on_and_not_367():
    moment = at("2026-01-01T08:00")
    near = closed_for(FIRST_DAY, 366, when_closed=WhenClosed.NEXT)
    far = closed_for(FIRST_DAY, 367, when_closed=WhenClosed.NEXT)

    assert place(near, moment) == moment + timedelta(days=366)
    assert place(far, moment) is None


def test_a_moment_is_moved_366_days_back_and_not_367():
    moment = at("2027-06-01T00:00")
    back = moment - timedelta(days=366)
    end = moment + timedelta(days=1)
    near = Blackout(back + timedelta(seconds=1), end)
    far = Blackout(back, end)

    assert place(Calendar(blackouts=(near,), when_closed=WhenClosed.PREVIOUS), moment) == back
    assert place(Calendar(blackouts=(far,), when_closed=WhenClosed.PREVIOUS), moment) is None


@pytest.mark.parametrize(
    ("when_closed", "moment"), [("next", "9999-12-31T08:00"), ("previous", "0001-01-01T08:00")]
)
def test_a_moment_at_the_end_of_time_has_nowhere_to_go(when_closed, moment):
    calendar = Calendar(dates=frozenset({at(moment).date()}), when_closed=WhenClosed(when_closed))

    assert place(calendar, at(moment)) is None


@settings(deadline=None)
@given(st.datetimes(), st.frozensets(st.integers(1, 7), max_size=6), st.sampled_from(WhenClosed))
def test_a_moment_is_placed_in_open_time_or_not_at_all(moment, weekends, when_closed):
    calendar = Calendar(weekends=weekends, when_closed=when_closed)
    placed = place(calendar, moment)

    if placed is not None:
        assert why_closed(calendar, placed) is None
        assert placed.time() == moment.time()
        assert abs(placed - moment) <= timedelta(days=6)


@pytest.mark.parametrize("key", ["dates", "workdays", "blackouts"])
def test_what_is_too_long_is_refused_before_any_of_it_is_read(key: str):
    with pytest.raises(InvalidSchedule, match=f"{key} may contain at most"):
        from_json({key: ["not even one that could be read"] * 1001})
