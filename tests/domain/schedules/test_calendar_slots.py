"""Slots through a calendar: what is skipped, where slots are moved, and that none is twice."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mainspring.domain.schedules.calendars import Blackout, Calendar, WhenClosed
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.timing import Timing, next_slot, slots_after

SKIP, NEXT, PREVIOUS = WhenClosed
BERLIN = "Europe/Berlin"  # 2026: gap 03-29 02:00 to 03:00, fold 10-25 03:00 to 02:00
NEW_YORK = "America/New_York"  # 2026: gap 03-08 02:00 to 03:00, fold 11-01 02:00 to 01:00
CAIRO = "Africa/Cairo"  # 2026: gap on Friday 04-24 00:00 to 01:00
ST_JOHNS = "America/St_Johns"  # 2010: fold 11-07 00:01 to 11-06 23:01
TORONTO = "America/Toronto"  # 1919: gap 03-30 23:30 to 03-31 00:30
APIA = "Pacific/Apia"  # 2011: all of Friday 12-30 was skipped
SATURDAY, SUNDAY = frozenset({6}), frozenset({7})
WEEKEND = SATURDAY | SUNDAY
NEVER = frozenset(range(1, 8))
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def blackout(start: str, end: str) -> Blackout:
    return Blackout(datetime.fromisoformat(start), datetime.fromisoformat(end))


def local(timing: Timing, after: str, count: int = 3, **closing: Any) -> list[str]:
    """The next slots through a calendar, as the zone's clock shows them."""
    timing, zone = replace(timing, calendar=Calendar(**closing)), ZoneInfo(timing.zone)
    found = islice(slots_after(timing, datetime.fromisoformat(after)), count)
    return [f"{slot.astimezone(zone):%a %m-%d %H:%M}" for slot in found]


# Weekends, holidays, years


def test_slots_on_closed_days_are_skipped():
    assert local(Timing(cron="0 9,18 * * *"), "2026-03-06T12:00Z", weekends=WEEKEND) == [
        "Fri 03-06 18:00",
        "Mon 03-09 09:00",
        "Mon 03-09 18:00",
    ]


@pytest.mark.parametrize("when_closed", [NEXT, PREVIOUS])
def test_slots_that_fall_together_are_one(when_closed):
    closing = {"weekends": WEEKEND, "when_closed": when_closed}

    assert local(Timing(cron="0 9 * * *"), "2026-03-05T00:00Z", **closing) == [
        "Thu 03-05 09:00",
        "Fri 03-06 09:00",
        "Mon 03-09 09:00",
    ]


@pytest.mark.parametrize(("when_closed", "day"), [(NEXT, "Mon 03-09"), (PREVIOUS, "Fri 03-06")])
def test_slots_that_overtake_each_other_come_in_order(when_closed, day):
    """Every 15 hours: on Saturday at 03:00 and 18:00, on Sunday at 09:00, all to one day."""
    saturday = datetime(2026, 3, 7, 3, tzinfo=UTC)
    every = Timing(every=15 * HOUR, anchor_at=saturday)

    found = local(every, "2026-03-05T00:00Z", 6, weekends=WEEKEND, when_closed=when_closed)

    own = ["Mon 03-09 00:00", "Mon 03-09 15:00", "Tue 03-10 06:00"]
    moved = [f"{day} 03:00", f"{day} 09:00", f"{day} 18:00"]
    assert found == sorted(own + moved, key=lambda text: text[4:])


@pytest.mark.parametrize(
    ("cron", "when_closed", "expected"),
    [
        ("0 9 25 12 *", NEXT, "Mon 12-28 09:00"),
        ("0 9 25 12 *", PREVIOUS, "Thu 12-24 09:00"),
        ("0 9 1 1 *", NEXT, "Mon 01-04 09:00"),
        ("0 9 1 1 *", PREVIOUS, "Thu 12-31 09:00"),
    ],
)
def test_a_slot_is_moved_over_holidays_and_the_turn_of_the_year(cron, when_closed, expected):
    """Christmas Day of 2026 and the next New Year's Day are Fridays."""
    closing = {"weekends": WEEKEND, "country": "DE", "when_closed": when_closed}

    assert local(Timing(cron=cron, zone=BERLIN), "2026-12-02T00:00Z", 1, **closing) == [expected]


def test_a_workday_is_open_though_it_is_on_a_weekend():
    workdays = frozenset({date(2026, 3, 14)})
    weekly = Timing(cron="0 9 * * 6")

    found = local(
        weekly, "2026-03-03T00:00Z", weekends=WEEKEND, workdays=workdays, when_closed=NEXT
    )

    assert found == ["Mon 03-09 09:00", "Sat 03-14 09:00", "Mon 03-23 09:00"]


@pytest.mark.parametrize(("when_closed", "day"), [(NEXT, 1), (PREVIOUS, -2)])
def test_what_is_rare_is_moved_however_far_away_it_is(when_closed, day):
    """The first 29 February after 2096 is in 2104, and the next on a Sunday is in 2128."""
    calendar = Calendar(weekends=WEEKEND, when_closed=when_closed)
    timing = Timing(cron="0 9 29 2 *", calendar=calendar)

    assert next_slot(timing, datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, 9, tzinfo=UTC
    )
    sunday = datetime(2128, 2, 29, 9, tzinfo=UTC)
    assert next_slot(timing, datetime(2124, 3, 1, tzinfo=UTC)) == sunday + day * DAY


def test_a_date_far_away_is_moved():
    saturday = datetime(2039, 12, 31, 9, tzinfo=UTC)
    timing = Timing(at=saturday, calendar=Calendar(weekends=WEEKEND, when_closed=NEXT))

    assert next_slot(timing, NEW_YEAR) == saturday + 2 * DAY


# Blackouts


def test_a_blackout_closes_from_its_start_up_to_its_end():
    stretch = blackout("2026-03-03T09:00", "2026-03-03T11:00")

    assert local(Timing(cron="0 * * * *"), "2026-03-03T07:00Z", blackouts=(stretch,)) == [
        "Tue 03-03 08:00",
        "Tue 03-03 11:00",
        "Tue 03-03 12:00",
    ]


@pytest.mark.parametrize(
    ("when_closed", "expected"),
    [
        (NEXT, ["Wed 03-04 09:30", "Thu 03-05 10:30"]),
        (PREVIOUS, ["Sun 03-01 09:30", "Mon 03-02 10:30"]),
    ],
)
def test_a_slot_is_moved_to_the_first_day_that_is_open_at_its_time_of_day(when_closed, expected):
    stretches = (
        blackout("2026-03-02T09:00", "2026-03-02T10:00"),
        blackout("2026-03-03T09:00", "2026-03-03T11:00"),
        blackout("2026-03-04T10:00", "2026-03-04T12:00"),
    )
    timing = Timing(cron="30 9,10 3 3 *")

    found = local(timing, "2026-01-01T00:00Z", 2, blackouts=stretches, when_closed=when_closed)

    assert found == expected


def test_an_interval_is_moved_over_a_day_on_which_it_has_other_times():
    """Every 25 hours: 09:30 on the 3rd passes over the 4th, whose own slot is at 10:30."""
    stretch = blackout("2026-03-03T09:00", "2026-03-04T10:00")
    every = Timing(every=25 * HOUR, anchor_at=datetime(2026, 3, 3, 9, 30, tzinfo=UTC))

    found = local(every, "2026-03-03T00:00Z", blackouts=(stretch,), when_closed=NEXT)

    assert found == ["Wed 03-04 10:30", "Thu 03-05 09:30", "Thu 03-05 11:30"]


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_a_minutely_schedule_leaves_out_a_month(when_closed):
    month = blackout("2026-02-01T00:00", "2026-03-01T00:00")
    minutely = Timing(cron="* * * * *", zone=BERLIN)

    found = local(minutely, "2026-01-31T22:58Z", blackouts=(month,), when_closed=when_closed)

    assert found == ["Sat 01-31 23:59", "Sun 03-01 00:00", "Sun 03-01 00:01"]


# Changes of the clock


@pytest.mark.parametrize("gap", DstGap)
def test_a_change_of_the_clock_on_a_closed_day_does_not_matter(gap):
    """02:30 does not exist on Sunday 03-08; it is moved to 02:30 all the same, not to 03:00."""
    weekly = Timing(cron="30 2 * * 0", zone=NEW_YORK, gap=gap)

    found = local(weekly, "2026-03-07T12:00Z", 2, weekends=WEEKEND, when_closed=NEXT)

    assert found == ["Mon 03-09 02:30", "Mon 03-16 02:30"]


def test_a_time_in_the_fold_of_a_closed_day_is_moved_once():
    weekly = Timing(cron="30 1 * * 0", zone=NEW_YORK, fold=DstFold.BOTH)

    found = local(weekly, "2026-10-31T12:00Z", 2, weekends=WEEKEND, when_closed=NEXT)

    assert found == ["Mon 11-02 01:30", "Mon 11-09 01:30"]


def test_a_slot_that_is_moved_into_the_fold_takes_its_first_showing():
    calendar = Calendar(weekends=SATURDAY, when_closed=NEXT)
    weekly = Timing(cron="30 1 * * 6", zone=NEW_YORK, fold=DstFold.BOTH, calendar=calendar)

    assert list(islice(slots_after(weekly, datetime(2026, 10, 30, tzinfo=UTC)), 2)) == [
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 8, 6, 30, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    ("cron", "gap", "expected"),
    [
        ("30 2 * * 6", DstGap.RUN_AFTER, "Sun 03-08 03:00"),
        ("30 2 * * 6", DstGap.SKIP, "Sun 03-15 02:30"),
        ("30 * * * 6", DstGap.RUN_AFTER, "Sun 03-08 03:30"),
    ],
)
def test_a_slot_that_is_moved_into_the_gap_is_treated_as_if_it_were_due_there(cron, gap, expected):
    """A fixed time runs after the gap, or not at all; one of every hour has no 02:30 that day."""
    timing = Timing(cron=cron, zone=NEW_YORK, gap=gap)

    found = local(timing, "2026-03-08T06:45Z", 1, weekends=SATURDAY, when_closed=NEXT)

    assert found == [expected]


def test_an_interval_that_is_moved_into_the_gap_runs_right_after_it():
    """On Saturday at 02:30 and a microsecond."""
    saturday = datetime(2026, 3, 7, 7, 30, 0, 1, tzinfo=UTC)
    calendar = Calendar(weekends=SATURDAY, when_closed=NEXT)
    daily = Timing(every=DAY, zone=NEW_YORK, anchor_at=saturday, calendar=calendar)

    assert next_slot(daily, NEW_YEAR) == datetime(2026, 3, 8, 7, tzinfo=UTC)


def test_a_slot_is_moved_into_a_gap_at_midnight():
    weekly = Timing(cron="30 0 * * 4", zone=CAIRO)

    found = local(weekly, "2026-04-22T12:00Z", 2, weekends=frozenset({4}), when_closed=NEXT)

    assert found == ["Fri 04-24 01:00", "Fri 05-01 00:30"]


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_a_blackout_that_ends_in_the_gap_leaves_what_is_right_after_it(when_closed):
    stretch = blackout("2026-03-08T00:00", "2026-03-08T02:30")
    timing = Timing(cron="*/10 * * * *", zone=NEW_YORK)

    found = local(timing, "2026-03-08T04:40Z", blackouts=(stretch,), when_closed=when_closed)

    assert found == ["Sat 03-07 23:50", "Sun 03-08 03:00", "Sun 03-08 03:10"]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [("03:00", "04:00", "Mon 03-09 02:30"), ("02:00", "03:00", "Sun 03-08 03:00")],
)
def test_a_time_in_the_gap_is_as_closed_as_the_end_of_the_gap(start, end, expected):
    """It would run at 03:00: a blackout from then on moves it, one up to then does not."""
    stretch = blackout(f"2026-03-08T{start}", f"2026-03-08T{end}")
    weekly = Timing(cron="30 2 * * 0", zone=NEW_YORK)

    found = local(weekly, "2026-03-07T12:00Z", 2, blackouts=(stretch,), when_closed=NEXT)

    assert found == [expected, "Sun 03-15 02:30"]


@pytest.mark.parametrize(
    ("end", "reopens"),
    [("2026-10-25T04:00", "Sun 10-25 04:00"), ("2027-05-01T00:00", "Sat 05-01 00:00")],
)
def test_a_clock_that_is_put_back_into_open_time_is_open_again(end, reopens):
    """A blackout begins at 02:30, and at 03:00 the clock shows 02:00 for the second time."""
    stretch = blackout("2026-10-25T02:30", end)
    timing = Timing(cron="*/20 * * * *", zone=BERLIN)

    found = local(timing, "2026-10-25T00:10Z", 4, blackouts=(stretch,))

    assert found == ["Sun 10-25 02:20", "Sun 10-25 02:00", "Sun 10-25 02:20", reopens]


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_a_clock_that_is_put_back_over_midnight_loses_nothing(when_closed):
    """At 00:01 on Sunday, which is closed, it is 23:01 on Saturday again."""
    timing = Timing(cron="*/20 * * * *", zone=ST_JOHNS)

    found = local(timing, "2010-11-07T01:55Z", 4, weekends=SUNDAY, when_closed=when_closed)

    assert found == ["Sat 11-06 23:40", "Sat 11-06 23:20", "Sat 11-06 23:40", "Mon 11-08 00:00"]


def test_a_slot_is_moved_into_a_day_that_was_skipped():
    """Thursday the 29th is closed, and Friday the 30th is no day in Samoa: right after it."""
    timing = Timing(cron="0 9 * * *", zone=APIA)
    closed = frozenset({date(2011, 12, 29)})

    found = local(timing, "2011-12-28T12:00Z", dates=closed, when_closed=NEXT)

    assert found == ["Wed 12-28 09:00", "Sat 12-31 00:00", "Sat 12-31 09:00"]


def test_a_day_that_was_skipped_takes_nothing_from_the_day_after_it():
    timing = Timing(cron="0 22 * * 6", zone=APIA)
    closed = frozenset({date(2012, 1, 1)})

    found = local(timing, "2011-12-28T12:00Z", 1, dates=closed, when_closed=PREVIOUS)

    assert found == ["Sat 12-31 22:00"]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [("45 23 30 3 *", "Mon 03-31 23:45"), ("15 0 31 3 *", "Tue 04-01 00:15")],
)
def test_a_gap_over_midnight_is_as_closed_as_its_end_on_both_days(cron, expected):
    stretch = blackout("1919-03-31T00:30", "1919-03-31T12:00")
    timing = Timing(cron=cron, zone=TORONTO)

    found = local(timing, "1919-03-29T00:00Z", 1, blackouts=(stretch,), when_closed=NEXT)

    assert found == [expected]


# Where it ends


@pytest.mark.parametrize(("days", "is_moved"), [(366, True), (367, False)])
@pytest.mark.parametrize(("when_closed", "step"), [(NEXT, DAY), (PREVIOUS, -DAY)])
def test_a_slot_is_moved_by_366_days_at_most(when_closed, step, days, is_moved):
    due = datetime(2030, 6, 3, 9, tzinfo=UTC)
    first, last = sorted((due, due + (days - 1) * step))
    stretch = Blackout(first.replace(tzinfo=None), last.replace(tzinfo=None) + HOUR)
    timing = Timing(at=due, calendar=Calendar(blackouts=(stretch,), when_closed=when_closed))

    assert next_slot(timing, NEW_YEAR) == (due + days * step if is_moved else None)


@pytest.mark.parametrize("when_closed", WhenClosed)
@pytest.mark.parametrize("cron", ["* * * * *", "0 9 * * 1", "0 9 29 2 *"])
def test_a_calendar_that_is_never_open_leaves_nothing(when_closed, cron):
    timing = Timing(cron=cron, calendar=Calendar(weekends=NEVER, when_closed=when_closed))

    assert next_slot(timing, NEW_YEAR) is None


def test_a_day_that_is_always_a_holiday_leaves_nothing():
    assert next_slot(Timing(cron="0 9 1 1 *", calendar=Calendar(country="DE")), NEW_YEAR) is None


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_what_is_open_again_after_five_years_is_found(when_closed):
    years = blackout("2026-01-01T00:00", "2031-01-01T00:00")
    calendar = Calendar(blackouts=(years,), when_closed=when_closed)

    found = next_slot(Timing(cron="0 9 * * *", calendar=calendar), NEW_YEAR)

    assert found == datetime(2031, 1, 1, 9, tzinfo=UTC)
