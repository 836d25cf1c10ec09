"""When a schedule is due: cron, interval or date, in a zone, through a calendar.

raw slots ──▶ calendar ──▶ starts_at .. ends_at ──▶ slots, strictly increasing, in UTC
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, takewhile

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules import cron
from mainspring.domain.schedules.calendar_slots import FARTHEST, CalendarSlots
from mainspring.domain.schedules.calendars import Calendar
from mainspring.domain.schedules.cron import Cron, DstFold, DstGap
from mainspring.domain.schedules.recurrence import Recurrence

_TICK = timedelta(microseconds=1)
_HORIZON = timedelta(days=36_525)
_LATEST = datetime.max.replace(tzinfo=UTC)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_INSTANTS = ("at", "starts_at", "ends_at", "anchor_at")


@dataclass(frozen=True, slots=True)
class Timing:
    """Everything that decides the slots of a schedule; exactly one of cron, every and at is set.

    Intervals count from `starts_at` or else `anchor_at`.
    """

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    zone: str = "UTC"
    gap: DstGap = DstGap.RUN_AFTER
    fold: DstFold = DstFold.ONCE
    calendar: Calendar | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    anchor_at: datetime | None = None
    spread_key: str = ""

    def __post_init__(self) -> None:
        for name in _INSTANTS:
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is not None:
                # Within a zone, Python takes both showings of a local time in the fold for equal.
                object.__setattr__(self, name, instant.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class Fire:
    """A future slot, also in local time; the note says if a clock change moves it."""

    at: datetime
    local: datetime
    note: str | None


def ensure_timing(timing: Timing) -> None:
    """Raise InvalidSchedule naming the part that is wrong."""
    if sum(part is not None for part in (timing.cron, timing.every, timing.at)) != 1:
        raise InvalidSchedule("timing", "give exactly one of cron, every and at")
    cron.find_zone(timing.zone)
    if timing.cron is not None:
        cron.parse(timing.cron, spread_key=timing.spread_key)
    if timing.every is not None and timing.every < timedelta(seconds=1):
        raise InvalidSchedule("every", "must be one second or more")
    for name in _INSTANTS:
        instant = getattr(timing, name)
        if instant is not None and instant.tzinfo is None:
            raise InvalidSchedule(name, "needs a time zone, such as datetime(..., tzinfo=UTC)")
    _ensure_slots(timing)


def _ensure_slots(timing: Timing) -> None:
    """Refuse what can be seen without a clock to leave nothing."""
    if timing.starts_at and timing.ends_at and timing.ends_at <= timing.starts_at:
        raise InvalidSchedule("ends_at", "must be after starts_at")
    if timing.at is not None and first_slot(timing, timing.at) is None:
        raise InvalidSchedule("at", "is excluded by starts_at, ends_at or the calendar")
    if timing.starts_at is not None and next_slot(timing, _EARLIEST) is None:
        raise InvalidSchedule("timing", "has no slot between starts_at and ends_at")


def next_slot(timing: Timing, after: datetime) -> datetime | None:
    """The first slot later than `after`; None when there is none any more."""
    return next(slots_after(timing, after), None)


def first_slot(timing: Timing, base: datetime) -> datetime | None:
    """The first slot of a schedule that counts from `base`; a date that has passed is due."""
    if timing.at is not None:
        base = min(base, timing.at) - 2 * FARTHEST
    return next_slot(timing, base)


def slots_after(timing: Timing, after: datetime) -> Iterator[datetime]:
    """All slots later than `after`, in order."""
    find = _finder(timing, after)
    if timing.starts_at is not None and after < timing.starts_at:
        after = timing.starts_at - _TICK
    while (slot := _found(find, after)) is not None:
        if timing.ends_at is not None and slot > timing.ends_at:
            return
        yield slot
        after = slot


def preview(timing: Timing, after: datetime, count: int) -> list[Fire]:
    """The next slots with what a person should know of them; none that are a century away."""
    zone = cron.find_zone(timing.zone)
    last = after + _HORIZON if after < _LATEST - _HORIZON else _LATEST
    near = takewhile(lambda slot: slot <= last, slots_after(timing, after))
    return [Fire(slot, slot.astimezone(zone), _note(timing, slot)) for slot in islice(near, count)]


def slots_between(timing: Timing, start: datetime, end: datetime, *, limit: int) -> list[datetime]:
    """The slots from start to end, both included; InvalidSchedule if they are too many."""
    if end < start:
        raise InvalidSchedule("range", "ends before it starts")
    due = takewhile(lambda slot: slot <= end, slots_after(timing, start - _TICK))
    slots = list(islice(due, limit + 1))
    if len(slots) > limit:
        raise InvalidSchedule(
            "range", f"contains more than {limit:,} slots; choose a shorter one or raise the limit"
        )
    return slots


def _note(timing: Timing, slot: datetime) -> str | None:
    if timing.cron is None:
        return None
    return cron.dst_note(_expression(timing), cron.find_zone(timing.zone), slot)


def _rhythm(timing: Timing, after: datetime) -> Recurrence:
    return Recurrence(
        cron.find_zone(timing.zone),
        expression=_expression(timing) if timing.at is None else None,
        at=timing.at,
        gap=timing.gap,
        fold=timing.fold,
        anchor_at=timing.starts_at or timing.anchor_at or after,
    )


def _expression(timing: Timing) -> Cron:
    if timing.every is not None:
        return Cron("@every", fields=None, every=timing.every, is_fixed_time=False)
    return cron.parse(timing.cron or "", spread_key=timing.spread_key)


def _finder(timing: Timing, after: datetime) -> Callable[[datetime], datetime | None]:
    recurrence = _rhythm(timing, after)
    if timing.calendar is None:
        return recurrence.next_after
    return partial(CalendarSlots(recurrence, timing.calendar).next_after, until=timing.ends_at)


def _found(find: Callable[[datetime], datetime | None], after: datetime) -> datetime | None:
    try:
        return find(after)
    except OverflowError:
        return None  # The years of `datetime` end.
