"""When a calendar is open, and how much of it a search looks at."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.calendars import Blackout, Calendar, WhenClosed
from mainspring.domain.schedules.open_times import MOST_STEPS, OpenTimes
from mainspring.domain.schedules.timing import Timing, next_slot, slots_after

NEW_YEAR = datetime(2026, 1, 1)  # noqa: DTZ001 - a local time
NOW = NEW_YEAR.replace(tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = 7 * DAY
MINUTE = timedelta(minutes=1)
EVERY_DAY = frozenset(range(1, 8))


def blackouts(count: int) -> tuple[Blackout, ...]:
    """Weeks of which only the last minute is open."""
    starts = [NEW_YEAR + number * WEEK for number in range(count)]
    return tuple(Blackout(start, start + WEEK - MINUTE) for start in starts)


def test_a_search_takes_so_many_steps_at_most():
    times = OpenTimes(Calendar(), ZoneInfo("UTC"))
    times.step(MOST_STEPS)

    with pytest.raises(InvalidSchedule, match=r"no slot was found within 1,500 steps"):
        times.step()


def test_each_search_has_a_budget_of_its_own():
    times = OpenTimes(Calendar(), ZoneInfo("UTC"))
    times.step(MOST_STEPS)

    times.begin()

    times.step(MOST_STEPS)


def test_few_of_many_searches_may_use_their_budget_up():
    times = OpenTimes(Calendar(), ZoneInfo("UTC"))
    for _ in range(100):
        times.begin()
        times.step(MOST_STEPS)

    times.begin()
    # Each begins with 20 steps more for all of them.
    with pytest.raises(InvalidSchedule):
        times.step(101 * 20 + 1)


@pytest.mark.parametrize("when_closed", [WhenClosed.NEXT, WhenClosed.PREVIOUS])
def test_a_rare_slot_among_weeks_of_blackouts_is_given_up(when_closed):
    calendar = Calendar(blackouts=blackouts(200), when_closed=when_closed)

    with pytest.raises(InvalidSchedule, match="use fewer or shorter blackouts"):
        next_slot(Timing(cron="0 12 * * *", calendar=calendar), NOW)


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_a_few_blackouts_are_searched_through(when_closed):
    calendar = Calendar(blackouts=blackouts(20), when_closed=when_closed)

    found = next_slot(Timing(cron="0 12 * * *", calendar=calendar), NOW)

    assert found == NOW + 20 * WEEK + timedelta(hours=12)


def test_nothing_is_searched_after_the_end():
    calendar = Calendar(blackouts=blackouts(200), when_closed=WhenClosed.NEXT)
    timing = Timing(cron="0 12 * * *", calendar=calendar, ends_at=NOW + WEEK)

    assert next_slot(timing, NOW) is None


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_only_workdays_are_open_where_every_weekday_is_closed(when_closed):
    workdays = frozenset({date(2030, 3, 1), date(2041, 7, 2)})
    calendar = Calendar(weekends=EVERY_DAY, workdays=workdays, when_closed=when_closed)

    found = list(slots_after(Timing(cron="0 9 * * *", calendar=calendar), NOW))

    assert [slot.date() for slot in found] == sorted(workdays)


@pytest.mark.parametrize("when_closed", WhenClosed)
def test_blackouts_that_overlap_close_what_they_close_together(when_closed):
    long = Blackout(NEW_YEAR, NEW_YEAR + 10 * DAY)
    short = Blackout(NEW_YEAR + DAY, NEW_YEAR + 2 * DAY)
    calendar = Calendar(blackouts=(short, long), when_closed=when_closed)

    slots = slots_after(Timing(cron="0 9 * * *", calendar=calendar), NOW)

    assert next(islice(slots, 0, None)) == NOW + 10 * DAY + timedelta(hours=9)
