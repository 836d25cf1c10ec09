"""Slots through any calendar are what brute force finds, around every change of the clock.

The brute force knows nothing of searching: it takes every slot of some weeks, moves each by
itself, and sorts what it gets.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.calendars import Blackout, Calendar, WhenClosed, why_closed
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.timing import Timing, slots_after
from tests.domain.schedules import clocks
from tests.domain.schedules.clocks import DAY, MINUTE

# Changes by half an hour to two, in the night, at midnight and over it, twice a year or more.
ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Chatham",
]
WINDOW = 8 * DAY
MARGIN = 25 * DAY
SECOND = timedelta(seconds=1)

thorough = settings(max_examples=80, deadline=None, derandomize=True)


@dataclass(frozen=True)
class LocalTimes:
    """What an expression is to name, written down apart from it; None is every hour or day."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None

    @property
    def cron(self) -> str:
        minute, hour, weekday = map(self._field, (self.minutes, self.hours, self.weekdays))
        return f"{minute} {hour} * * {weekday}"

    @staticmethod
    def _field(values: tuple[int, ...] | None) -> str:
        return "*" if values is None else ",".join(map(str, values))

    def on(self, day: date) -> Iterator[datetime]:
        if self.weekdays is None or day.isoweekday() in self.weekdays:
            for hour in range(24) if self.hours is None else self.hours:
                for minute in self.minutes:
                    yield datetime.combine(day, time(hour, minute))


@dataclass(frozen=True)
class BruteForce:
    timing: Timing
    calendar: Calendar
    local_times: LocalTimes | None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timing.zone)

    def slots(self, start: datetime, end: datetime) -> list[datetime]:
        raw = replace(self.timing, calendar=None)
        due = takewhile(lambda slot: slot < end + MARGIN, slots_after(raw, start - MARGIN))
        shown = {slot: self.local_time(slot) for slot in due}
        found = {slot for slot, local_time in shown.items() if not self.is_closed(local_time)}
        if self.calendar.when_closed is not WhenClosed.SKIP:
            local_times = shown.values() if self.local_times is None else self.named(start, end)
            found |= {slot for local_time in set(local_times) if (slot := self.moved(local_time))}
        return sorted(slot for slot in found if start < slot < end)

    def named(self, start: datetime, end: datetime) -> Iterator[datetime]:
        assert self.local_times is not None
        for number in range((end - start + 2 * MARGIN) // DAY):
            yield from self.local_times.on((start - MARGIN + number * DAY).date())

    def local_time(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def first_showing(self, local_time: datetime) -> datetime:
        return local_time.replace(tzinfo=self.zone).astimezone(UTC)

    def is_shown(self, local_time: datetime) -> bool:
        return self.local_time(self.first_showing(local_time)) == local_time

    def after_gap(self, local_time: datetime) -> datetime:
        while not self.is_shown(local_time):
            local_time = local_time.replace(second=0, microsecond=0) + MINUTE
        return local_time

    def is_closed(self, local_time: datetime) -> bool:
        return why_closed(self.calendar, self.after_gap(local_time)) is not None

    def moved(self, local_time: datetime) -> datetime | None:
        if not self.is_closed(local_time):
            return None
        step = DAY if self.calendar.when_closed is WhenClosed.NEXT else -DAY
        while self.is_closed(local_time):
            local_time += step
        is_hourly = self.local_times is not None and self.local_times.hours is None
        if not self.is_shown(local_time) and (is_hourly or self.timing.gap is DstGap.SKIP):
            return None
        return self.first_showing(self.after_gap(local_time))


def some(values: Sequence[int]) -> st.SearchStrategy[tuple[int, ...]]:
    chosen = st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)
    return chosen.map(lambda found: tuple(sorted(found)))


local_times = st.builds(
    LocalTimes, some(range(0, 60, 5)), st.none() | some(range(24)), st.none() | some(range(1, 8))
)
intervals = st.sampled_from([3600, 7 * 3600, 86_400, 90_000]) | st.integers(2000, 400_000)


@st.composite
def calendars(draw: st.DrawFn, around: datetime) -> Calendar:
    """Closed for two weeks at most, with blackouts that begin and end around a local time."""
    days = st.integers(-10, 10)
    dates = st.frozensets(days.map(lambda number: around.date() + number * DAY), max_size=4)
    near = st.integers(-240, 240).map(lambda minutes: around + minutes * MINUTE)
    starts = draw(st.lists(near | days.map(lambda number: around + number * DAY), max_size=4))
    lengths = st.sampled_from([5, 30, 60, 1440, 3000]) | st.integers(1, 300)
    return Calendar(
        weekends=draw(st.frozensets(st.integers(1, 7), max_size=5)),
        dates=draw(dates),
        workdays=draw(dates),
        blackouts=tuple(Blackout(start, start + draw(lengths) * MINUTE) for start in starts),
        when_closed=draw(st.sampled_from(WhenClosed)),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[BruteForce, datetime]:
    """Anything that can be due, and an instant some days before a change of the clock."""
    name = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(clocks.changes(name)))
    named = draw(st.none() | local_times)
    calendar = draw(calendars(change.edges[0]))
    timing = Timing(
        cron=named.cron if named else None,
        every=None if named else draw(intervals) * SECOND,
        anchor_at=change.at - 60 * DAY + draw(st.integers(0, 86_400)) * SECOND,
        zone=name,
        gap=draw(st.sampled_from(DstGap)),
        fold=draw(st.sampled_from(DstFold)),
        calendar=calendar,
    )
    start = change.at - WINDOW / 2 + draw(st.integers(0, 90_000)) * SECOND
    return BruteForce(timing, calendar, named), start


@given(cases())
@thorough
def test_slots_through_any_calendar_are_what_brute_force_finds(case):
    brute_force, start = case
    end = start + WINDOW

    found = list(slots_until(end, slots_after(brute_force.timing, start)))

    assert found == brute_force.slots(start, end)


def slots_until(end: datetime, slots: Iterator[datetime]) -> Iterator[datetime]:
    """Up to where the search gives up: some have no slot for centuries."""
    with suppress(InvalidSchedule):
        yield from takewhile(lambda slot: slot < end, slots)
