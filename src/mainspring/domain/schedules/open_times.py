"""When a calendar is open, day by day, and how much of it one search may look at.

A calendar can close years, and whoever writes it decides how long a search for the next slot takes.
So stretches of closed time are jumped over, and a search has a budget: each day and each slot that
it looks at is a step, and one that takes too many ends with InvalidSchedule. Many slots in a row,
as for a preview, are as many searches, of which few may use their budget up.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules import calendars, zones
from mainspring.domain.schedules.calendars import Blackout, Calendar

# Times of day, in order, each from the first up to the second.
Times = list[tuple[timedelta, timedelta]]

MOST_STEPS = 1500
# Of all searches together: a hundred that use theirs up, and any number that take a few.
_MOST_IN_ALL = 100 * MOST_STEPS
_FEW_STEPS = 20
# To find the holidays of a year takes as long as so many steps.
_STEPS_OF_A_YEAR = 25
_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_WHOLE_DAY: Times = [(timedelta(0), _DAY)]
_ALL_WEEKDAYS = frozenset(range(1, 8))


class OpenTimes:
    """The open times of a calendar in a zone, for one search after the other."""

    def __init__(self, calendar: Calendar, zone: ZoneInfo) -> None:
        self._calendar, self._zone = calendar, zone
        self._closed_stretches = _merged(calendar.blackouts)
        self._starts = [start for start, _ in self._closed_stretches]
        self._days: dict[date, Times] = {}
        self._years: set[int] = set()
        self._workdays: list[date] | None = None
        if calendar.weekends == _ALL_WEEKDAYS:
            self._workdays = sorted(calendar.workdays)
        self._left, self._left_in_all = MOST_STEPS, _MOST_IN_ALL

    def begin(self) -> None:
        """Start another search, with a budget of its own."""
        self._left = MOST_STEPS
        self._left_in_all += _FEW_STEPS

    def step(self, count: int = 1) -> None:
        """Count a day or a slot that is looked at."""
        self._left -= count
        self._left_in_all -= count
        if self._left < 0 or self._left_in_all < 0:
            raise InvalidSchedule(
                "calendar",
                f"closes so much that no slot was found within {MOST_STEPS:,} steps; "
                "use fewer or shorter blackouts and fewer closed dates",
            )

    def has(self, local_time: datetime) -> bool:
        """Whether the calendar is open then."""
        return not self._is_free(local_time.date()) and self._end_of_stretch(local_time) is None

    def reopening(self, local_time: datetime) -> datetime | None:
        """A local time up to which all is closed, from one that is; None if it stays closed."""
        ends = [self._end_of_stretch(local_time) or local_time]
        if self._is_free(local_time.date()):
            tomorrow = self._next_workday(local_time.date())
            if tomorrow is None:
                return None
            ends.append(midnight(tomorrow))
        return max(ends)

    def next_day(self, day: date) -> date | None:
        """The next day that may have open times; None if there is none any more."""
        tomorrow = day + _DAY
        if self.has(midnight(tomorrow)):
            return tomorrow
        reopens = self.reopening(midnight(tomorrow))
        # A gap may end on the day that is open, and begin on the one before.
        return None if reopens is None else max(tomorrow, reopens.date() - _DAY)

    def closed(self, day: date) -> Times:
        closed = _WHOLE_DAY
        for start, end in self.of(day):
            closed = without(closed, start, end)
        return closed

    def of(self, day: date) -> Times:
        """The times of this day at which the calendar is open."""
        found = self._days.get(day)
        if found is None:
            found = self._days[day] = self._find(day)
        return found

    def _find(self, day: date) -> Times:
        begin = midnight(day)
        times = [] if self._is_free(day) else _WHOLE_DAY
        index = max(bisect_right(self._starts, begin) - 1, 0)
        while times and index < len(self._starts) and self._starts[index] < begin + _DAY:
            start, end = self._closed_stretches[index]
            times = without(times, start - begin, end - begin)
            index += 1
        gap = self._gap(begin)
        if gap is None:
            return times
        return sorted(without(times, *gap) + ([gap] if self.has(begin + gap[1]) else []))

    def _gap(self, begin: datetime) -> tuple[timedelta, timedelta] | None:
        """What the clock skips on or around the day that begins then, counted from its midnight."""
        zone = self._zone
        evening, next_midnight = begin - _SECOND, begin + _DAY
        offsets = zones.offsets(zone, evening)
        if offsets[0] == zones.offsets(zone, next_midnight)[1]:
            return None
        # The evening may be in the gap itself.
        start, end = zones.to_utc(evening, max(offsets)), zones.to_utc(next_midnight, offsets[0])
        change = zones.change_between(zone, start, end)
        skipped = zones.local_time_of(zone, change - _TICK) + _TICK - begin
        until = zones.local_time_of(zone, change) - begin
        return (skipped, until) if skipped < until else None

    def _is_free(self, day: date) -> bool:
        if self._calendar.country is not None and day.year not in self._years:
            self._years.add(day.year)
            self.step(_STEPS_OF_A_YEAR)
        return calendars.why_free(self._calendar, day) is not None

    def _end_of_stretch(self, local_time: datetime) -> datetime | None:
        """When the blackouts end that close this local time; None if there is none."""
        index = bisect_right(self._starts, local_time) - 1
        if index < 0 or local_time >= self._closed_stretches[index][1]:
            return None
        return self._closed_stretches[index][1]

    def _next_workday(self, day: date) -> date | None:
        """The next day that may not be free."""
        if self._workdays is None:
            return day + _DAY
        index = bisect_right(self._workdays, day)
        return self._workdays[index] if index < len(self._workdays) else None


def midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def common(some: Times, others: Times) -> Times:
    return _filled(
        (max(start, other_start), min(end, other_end))
        for start, end in some
        for other_start, other_end in others
    )


def without(times: Times, start: timedelta, end: timedelta) -> Times:
    return _filled(
        part
        for first, last in times
        for part in ((first, min(last, start)), (max(first, end), last))
    )


def _filled(times: Iterable[tuple[timedelta, timedelta]]) -> Times:
    return [(start, end) for start, end in times if start < end]


def _merged(blackouts: Iterable[Blackout]) -> list[tuple[datetime, datetime]]:
    """The stretches that blackouts close together, apart from each other and in order."""
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted((each.start, each.end) for each in blackouts):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
