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
end of the gap, which is when it would run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from mainspring.domain.schedules import calendars, zones
from mainspring.domain.schedules.calendars import Calendar, WhenClosed
from mainspring.domain.schedules.recurrence import Recurrence

# Times of day, in order, each from the first up to the second.
Times = list[tuple[timedelta, timedelta]]

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_WHOLE_DAY: Times = [(timedelta(0), _DAY)]
# As far as `calendars.place` moves a slot.
FARTHEST = timedelta(days=366)
# What is closed for longer is taken to be closed for ever.
_CLOSED_IN_A_ROW = 2000
_HORIZON = timedelta(days=366 * 50)


def next_open(recurrence: Recurrence, calendar: Calendar, after: datetime) -> datetime | None:
    """The first slot later than `after` that the calendar leaves; None if there is none."""
    search = _Search(recurrence, calendar)
    if calendar.when_closed is WhenClosed.SKIP:
        return search.unmoved(after, before=after + _HORIZON)
    return search.after(after)


@dataclass(frozen=True, slots=True)
class _Search:
    recurrence: Recurrence
    calendar: Calendar

    def unmoved(self, after: datetime, *, before: datetime) -> datetime | None:
        """The first slot that falls in open time by itself."""
        for _ in range(_CLOSED_IN_A_ROW):
            slot = self.recurrence.next_after(after)
            if slot is None or slot >= before:
                return None
            local_time = zones.local_time_of(self.recurrence.zone, slot)
            if calendars.why_closed(self.calendar, local_time) is None:
                return slot
            after = self._reopening(slot, local_time) - _TICK
        return None

    def _reopening(self, slot: datetime, local_time: datetime) -> datetime:
        """An instant up to which all is closed from this slot on."""
        ends = (each.end for each in self.calendar.blackouts if each.start <= local_time < each.end)
        reopens = max(ends, default=_midnight(local_time.date() + _DAY))
        soon = self._instant(min(reopens, local_time + _DAY))
        zone = self.recurrence.zone
        if soon.astimezone(zone).utcoffset() != slot.astimezone(zone).utcoffset():
            # The clock may be put back to a local time that was open.
            soon = zones.change_between(zone, slot.replace(microsecond=0), soon)
            return max(soon, slot + _TICK)
        return self._instant(reopens)

    def after(self, after: datetime) -> datetime | None:
        day: date | None = zones.local_time_of(self.recurrence.zone, after).date()
        for _ in range(_CLOSED_IN_A_ROW):
            if day is None:
                break
            end = self._instant(_midnight(day + _DAY))
            found = (self.unmoved(after, before=end), self._moved_to(day, after))
            if slots := [slot for slot in found if slot is not None]:
                return min(slots)
            after = max(after, end - _TICK)
            day = self._following(day)
        return None

    def _following(self, day: date) -> date | None:
        """The next day on which anything can land."""
        tomorrow = day + _DAY
        is_next = self.calendar.when_closed is WhenClosed.NEXT
        if self._closed(day if is_next else tomorrow):
            return tomorrow
        local_time = self.recurrence.first_local_time(
            _midnight(tomorrow), _midnight(tomorrow) + _HORIZON
        )
        if local_time is None:
            return None
        found = local_time.date()
        while not is_next and found > tomorrow and self._closed(found):
            found -= _DAY
        return found

    def _moved_to(self, day: date, after: datetime) -> datetime | None:
        """The first slot later than `after` that is moved to this day."""
        target = source = _midnight(day)
        back = -_DAY if self.calendar.when_closed is WhenClosed.NEXT else _DAY
        since = zones.local_time_of(self.recurrence.zone, after) + _TICK - target
        times = _common(self._open(day), [(since, _DAY)])
        landed = None
        for _ in range(FARTHEST.days):
            source += back
            times = _common(times, self._closed(source.date()))
            if not times:
                break
            local_time = self._first_moved(source, times, target=target, after=after)
            if local_time is not None:
                landed = self._instant(target + (local_time - source))
                times = _common(times, [(timedelta(0), local_time - source)])
        return landed

    def _first_moved(
        self, source: datetime, times: Times, *, target: datetime, after: datetime
    ) -> datetime | None:
        for start, end in times:
            local_time = self.recurrence.first_local_time(source + start, source + end)
            while local_time is not None:
                if self._lands(target + (local_time - source), after):
                    return local_time
                local_time = self.recurrence.first_local_time(local_time + _TICK, source + end)
        return None

    def _lands(self, local_time: datetime, after: datetime) -> bool:
        earlier, later = zones.offsets(self.recurrence.zone, local_time)
        is_shown = earlier >= later or self.recurrence.runs_after_gaps
        return is_shown and self._instant(local_time) > after

    def _instant(self, local_time: datetime) -> datetime:
        """The first instant at which the clock shows this local time, or has skipped it."""
        earlier, later = zones.offsets(self.recurrence.zone, local_time)
        if earlier >= later:
            return zones.to_utc(local_time, earlier)
        whole = local_time.replace(microsecond=0)
        ends = zones.to_utc(whole, later), zones.to_utc(whole, earlier)
        return zones.change_between(self.recurrence.zone, *ends)

    def _closed(self, day: date) -> Times:
        closed = _WHOLE_DAY
        for start, end in self._open(day):
            closed = _without(closed, start, end)
        return closed

    def _open(self, day: date) -> Times:
        """The times of this day at which the calendar is open."""
        midnight = _midnight(day)
        times = _WHOLE_DAY
        for each in self.calendar.blackouts:
            if each.start < midnight + _DAY and midnight < each.end:
                times = _without(times, each.start - midnight, each.end - midnight)
        if times and calendars.why_closed(self.calendar, midnight + times[0][0]) is not None:
            times = []
        gap = self._gap(midnight)
        if gap is None:
            return times
        is_open = calendars.why_closed(self.calendar, midnight + gap[1]) is None
        return sorted(_without(times, *gap) + ([gap] if is_open else []))

    def _gap(self, midnight: datetime) -> tuple[timedelta, timedelta] | None:
        """What the clock skips on or around this day, counted from its midnight."""
        zone = self.recurrence.zone
        evening, next_midnight = midnight - _SECOND, midnight + _DAY
        offsets = zones.offsets(zone, evening)
        if offsets[0] == zones.offsets(zone, next_midnight)[1]:
            return None
        # The evening may be in the gap itself.
        start, end = zones.to_utc(evening, max(offsets)), zones.to_utc(next_midnight, offsets[0])
        change = zones.change_between(zone, start, end)
        skipped = zones.local_time_of(zone, change - _TICK) + _TICK - midnight
        until = zones.local_time_of(zone, change) - midnight
        return (skipped, until) if skipped < until else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def _common(some: Times, others: Times) -> Times:
    return _filled(
        (max(start, other_start), min(end, other_end))
        for start, end in some
        for other_start, other_end in others
    )


def _without(times: Times, start: timedelta, end: timedelta) -> Times:
    return _filled(
        part
        for first, last in times
        for part in ((first, min(last, start)), (max(first, end), last))
    )


def _filled(times: Iterable[tuple[timedelta, timedelta]]) -> Times:
    return [(start, end) for start, end in times if start < end]
