"""Slots through a calendar: those in closed time are skipped, or moved by whole days.

Moved slots can overtake each other and fall together, so they are looked for from the day on
which they land. With `next`, a slot lands where its time of day is open and was closed on
every day since its own:

              Fri      Sat      Sun      Mon
    09:00     open     closed   closed   open    ◀── those of Sat, Sun and Mon: one slot
    18:00     open     closed   open     open        that of Sat is on Sun, not on Mon

So the times of day that can land on Monday become fewer with every day further back, and the
search ends where none is left. `previous` is the same in the other direction.

On a closed day only local times count (see `zones`): 02:30 is moved to 02:30, whether or not the
clock was changed on the day it comes from. A local time that the clock skips is as closed as the
end of the gap, which is when it would run. How long a search may take is said in `open_times`.
"""

from datetime import date, datetime, timedelta

from mainspring.domain.schedules import zones
from mainspring.domain.schedules.calendars import Calendar, WhenClosed
from mainspring.domain.schedules.open_times import OpenTimes, Times, common, midnight
from mainspring.domain.schedules.recurrence import Recurrence

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
# As far as `calendars.place` moves a slot.
FARTHEST = timedelta(days=366)
_HORIZON = timedelta(days=366 * 50)


class CalendarSlots:
    """The slots of a recurrence that a calendar leaves."""

    def __init__(self, recurrence: Recurrence, calendar: Calendar) -> None:
        self._recurrence = recurrence
        self._when_closed = calendar.when_closed
        self._open = OpenTimes(calendar, recurrence.zone)
        self._known: tuple[datetime, datetime | None] | None = None
        """Where the last look for a slot began, and what it found."""

    def next_after(self, after: datetime, *, until: datetime | None = None) -> datetime | None:
        """The first slot later than `after`; None if there is none, or none up to `until`.
        Raises InvalidSchedule if a search finds none within the steps it may take."""
        self._open.begin()
        before = after + _HORIZON if until is None else min(until + _TICK, after + _HORIZON)
        if self._when_closed is WhenClosed.SKIP:
            return self._unmoved(after, before=before)
        return self._landed(after, before=before)

    def _unmoved(self, after: datetime, *, before: datetime) -> datetime | None:
        """The first slot that falls in open time by itself."""
        while True:
            slot = self._raw(after)
            if slot is None or slot >= before:
                return None
            self._open.step()
            local_time = zones.local_time_of(self._recurrence.zone, slot)
            if self._open.has(local_time):
                return slot
            reopens = self._reopening(slot, local_time)
            if reopens is None:
                return None
            after = reopens - _TICK

    def _raw(self, after: datetime) -> datetime | None:
        """The next slot before any calendar; rare ones take long to find, and are asked for on
        every closed day before them."""
        if self._known is not None:
            began, found = self._known
            if began <= after and (found is None or after < found):
                return found
        found = self._recurrence.next_after(after)
        self._known = after, found
        return found

    def _reopening(self, slot: datetime, local_time: datetime) -> datetime | None:
        """An instant up to which all is closed from this slot on; None if it stays closed."""
        reopens = self._open.reopening(local_time)
        tomorrow = local_time + _DAY
        soon = self._instant(tomorrow if reopens is None else min(reopens, tomorrow))
        zone = self._recurrence.zone
        if soon.astimezone(zone).utcoffset() != slot.astimezone(zone).utcoffset():
            # The clock may be put back to a local time that was open.
            soon = zones.change_between(zone, slot.replace(microsecond=0), soon)
            return max(soon, slot + _TICK)
        return None if reopens is None else self._instant(reopens)

    def _landed(self, after: datetime, *, before: datetime) -> datetime | None:
        """The first slot in open time, by itself or after it was moved."""
        day: date | None = zones.local_time_of(self._recurrence.zone, after).date()
        while day is not None and after < before:
            self._open.step()
            end = self._instant(midnight(day + _DAY))
            found = (self._unmoved(after, before=end), self._moved_to(day, after))
            if slots := [slot for slot in found if slot is not None]:
                return min(slots)
            after = max(after, end - _TICK)
            day = self._following(day)
        return None

    def _following(self, day: date) -> date | None:
        """The next day on which anything can land."""
        tomorrow = day + _DAY
        is_next = self._when_closed is WhenClosed.NEXT
        if self._open.closed(day if is_next else tomorrow):
            return self._open.next_day(day)
        local_time = self._recurrence.first_local_time(
            midnight(tomorrow), midnight(tomorrow) + _HORIZON
        )
        if local_time is None:
            return None
        found = local_time.date()
        while not is_next and found > tomorrow and self._open.closed(found):
            self._open.step()
            found -= _DAY
        return found

    def _moved_to(self, day: date, after: datetime) -> datetime | None:
        """The first slot later than `after` that is moved to this day."""
        target = source = midnight(day)
        back = -_DAY if self._when_closed is WhenClosed.NEXT else _DAY
        since = zones.local_time_of(self._recurrence.zone, after) + _TICK - target
        times = common(self._open.of(day), [(since, _DAY)])
        quiet = _Quiet(self._recurrence, is_backward=back < timedelta(0))
        landed = None
        for _ in range(FARTHEST.days if times else 0):
            source += back
            self._open.step()
            times = common(times, self._open.closed(source.date()))
            if not times:
                break
            if quiet.has(source):
                continue
            local_time = self._first_moved(source, times, target=target, after=after)
            if local_time is not None:
                landed = self._instant(target + (local_time - source))
                times = common(times, [(timedelta(0), local_time - source)])
        return landed

    def _first_moved(
        self, source: datetime, times: Times, *, target: datetime, after: datetime
    ) -> datetime | None:
        for start, end in times:
            local_time = self._recurrence.first_local_time(source + start, source + end)
            while local_time is not None:
                if self._lands(target + (local_time - source), after):
                    return local_time
                self._open.step()
                local_time = self._recurrence.first_local_time(local_time + _TICK, source + end)
        return None

    def _lands(self, local_time: datetime, after: datetime) -> bool:
        earlier, later = zones.offsets(self._recurrence.zone, local_time)
        is_shown = earlier >= later or self._recurrence.runs_after_gaps
        return is_shown and self._instant(local_time) > after

    def _instant(self, local_time: datetime) -> datetime:
        """The first instant at which the clock shows this local time, or has skipped it."""
        earlier, later = zones.offsets(self._recurrence.zone, local_time)
        if earlier >= later:
            return zones.to_utc(local_time, earlier)
        whole = local_time.replace(microsecond=0)
        ends = zones.to_utc(whole, later), zones.to_utc(whole, earlier)
        return zones.change_between(self._recurrence.zone, *ends)


class _Quiet:
    """Days in a row on which a recurrence has nothing, so that rare slots are not looked for on
    each day: twice as many are looked at each time there was nothing."""

    def __init__(self, recurrence: Recurrence, *, is_backward: bool) -> None:
        self._recurrence, self._is_backward = recurrence, is_backward
        self._count = 1
        self._found: tuple[datetime, datetime] | None = None

    def has(self, day: datetime) -> bool:
        """Whether the day that begins then is known to be one of them."""
        if self._found is not None and self._found[0] <= day < self._found[1]:
            return True
        if self._count > 1:
            others = (self._count - 1) * _DAY
            start = day - others if self._is_backward else day
            self._found = start, start + others + _DAY
            if self._recurrence.first_local_time(*self._found) is None:
                self._count *= 2
                return True
        self._count, self._found = 2 if self._count == 1 else 1, None
        return False
