"""When a cron expression fires, in any time zone, through every change of its clock.

The library `cronsim` says which local times (see `domain.zones`) an expression matches; it is
given local times only, because it errs around changes of the clock when it is given a zone. Here a
local time becomes an instant in UTC:

    an ordinary local time      the instant it is shown
    a local time in the gap     a fixed time: the instant after the gap, or nothing (DstGap)
                          otherwise:    nothing, since no clock ever shows it
    a local time in the fold    a fixed time: the first instant it is shown, or both (DstFold)
                          otherwise:    both, so the recurrence goes on in real time

As in Debian's cron, a time is fixed when neither the minute nor the hour starts with `*`.
So `*/30 * * * *` behaves as a fixed time with the policies SKIP and BOTH would, and one
search serves both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules import cron_descriptions, cron_expressions, zones
from mainspring.domain.schedules.cron_fields import FIELDS, Items, plain, spread
from mainspring.domain.schedules.zones import find_zone

__all__ = [
    "Cron",
    "DstFold",
    "DstGap",
    "dst_note",
    "explain",
    "find_zone",
    "next_after",
    "parse",
]

# The rarest expressions, such as 29 February on a Sunday, are at most 40 years apart.
_HORIZON_YEARS = 50
_PROBE = datetime.combine(date(2000, 1, 1), time())
_SECOND = timedelta(seconds=1)


class DstGap(StrEnum):
    """What becomes of a fixed time that the clock skips."""

    RUN_AFTER = "run_after"
    SKIP = "skip"


class DstFold(StrEnum):
    """How often a fixed time fires that the clock shows twice."""

    ONCE = "once"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid expression: either `fields` or `every` is given."""

    text: str
    fields: str | None
    every: timedelta | None
    is_fixed_time: bool


@dataclass(frozen=True, slots=True)
class _Search:
    fields: str
    zone: ZoneInfo
    gap: DstGap
    fold: DstFold

    def after(self, instant: datetime) -> datetime | None:
        local_time = zones.local_time_of(self.zone, instant)
        found = self._from(local_time, instant)
        again = self._second_showing(local_time, instant)
        if again is None:
            return found
        other = self._from(again - _SECOND, instant)
        return min((each for each in (found, other) if each), default=None)

    def _from(self, start: datetime, after: datetime) -> datetime | None:
        """The first fire later than `after` among the local times later than `start`."""
        for local_time in CronSim(self.fields, start):
            if local_time.year > start.year + _HORIZON_YEARS:
                return None
            for instant in self._instants(local_time):
                if instant > after:
                    return instant
        return None

    def _instants(self, local_time: datetime) -> Iterator[datetime]:
        before, after = zones.offsets(self.zone, local_time)
        if before < after:
            if self.gap is DstGap.RUN_AFTER:
                ends = zones.to_utc(local_time, after), zones.to_utc(local_time, before)
                yield zones.change_between(self.zone, *ends)
            return
        yield zones.to_utc(local_time, before)
        if before > after and self.fold is DstFold.BOTH:
            yield zones.to_utc(local_time, after)

    def _second_showing(self, local_time: datetime, instant: datetime) -> datetime | None:
        """Where the clock is put back to, if that is to come and its local times fire again."""
        if self.fold is DstFold.ONCE:
            return None
        before, after = zones.offsets(self.zone, local_time)
        if before <= after or zones.to_utc(local_time, before) != instant:
            return None
        change = zones.change_between(self.zone, instant, zones.to_utc(local_time, after))
        return zones.local_time_of(self.zone, change)


def parse(text: str, *, spread_key: str = "") -> Cron:
    """Read an expression; `H` is chosen by `spread_key`, the same for the same key for ever."""
    cron_expressions.ensure_plain(text)
    return _parse(text, spread_key if "h" in text.lower() else "")


@lru_cache(maxsize=4096)
def _parse(text: str, spread_key: str) -> Cron:
    expression = cron_expressions.read(text)
    if isinstance(expression, timedelta):
        return Cron(text, fields=None, every=expression, is_fixed_time=False)
    fields = _plain_fields(expression, spread_key)
    _ensure_matches(text, " ".join(fields))
    is_fixed_time = not any(field.startswith("*") for field in fields[:2])
    return Cron(text, fields=" ".join(fields), every=None, is_fixed_time=is_fixed_time)


def _plain_fields(expression: tuple[Items, ...], spread_key: str) -> list[str]:
    pairs = zip(FIELDS, expression, strict=True)
    return [plain(spread(field, items, spread_key)) for field, items in pairs]


def _ensure_matches(text: str, fields: str) -> None:
    try:
        found = next(CronSim(fields, _PROBE), None)
    except CronSimError:
        found = None
    if found is None:
        raise InvalidSchedule("cron", f"{text.strip()!r} never matches; there is no such date")


def next_after(
    cron: Cron,
    zone: ZoneInfo,
    after: datetime,
    *,
    gap: DstGap = DstGap.RUN_AFTER,
    fold: DstFold = DstFold.ONCE,
    anchor: datetime | None = None,
) -> datetime | None:
    """The first fire strictly after an aware instant, in UTC; None if there is none any more."""
    if after.tzinfo is None:
        raise ValueError("after must have a time zone")
    # In UTC before anything compares or caches it: within a zone, Python takes the two
    # showings of a local time in the fold for equal.
    after = after.astimezone(UTC)
    if cron.every is not None:
        return _next_every(cron.every, after, after if anchor is None else anchor.astimezone(UTC))
    if cron.fields is None:
        return None
    if not cron.is_fixed_time:
        gap, fold = DstGap.SKIP, DstFold.BOTH
    # Fires are whole seconds, so all starts within one share their answer.
    return _next_match(_Search(cron.fields, zone, gap, fold), after.replace(microsecond=0))


@lru_cache(maxsize=8192)
def _next_match(search: _Search, after: datetime) -> datetime | None:
    try:
        return search.after(after)
    except OverflowError:
        return None


def _next_every(every: timedelta, after: datetime, anchor: datetime) -> datetime | None:
    """The first of anchor, anchor + every, ... that is later than `after`."""
    if after < anchor:
        return anchor
    try:
        return anchor + ((after - anchor) // every + 1) * every
    except OverflowError:
        return None


def dst_note(cron: Cron, zone: ZoneInfo, at: datetime) -> str | None:
    """What a change of the clock did to the fire at this instant, in words."""
    if cron.fields is None:
        return None
    at = at.astimezone(UTC)
    local_time = zones.local_time_of(zone, at)
    before, after = zones.offsets(zone, local_time)
    if before > after:
        showing = "first" if zones.to_utc(local_time, before) == at else "second"
        return f"{local_time:%H:%M} occurs twice on this day; this is the {showing}"
    missed = _skipped_match(cron.fields, zone, at) if cron.is_fixed_time else None
    if missed is None:
        return None
    if missed.date() != local_time.date():
        return f"{missed:%Y-%m-%d %H:%M} does not exist; runs right after the gap"
    return f"{missed:%H:%M} does not exist on this day; runs right after the gap"


def _skipped_match(fields: str, zone: ZoneInfo, at: datetime) -> datetime | None:
    """The first match in the gap that ends at `at`, unless that instant is a match itself."""
    local_time = zones.local_time_of(zone, at)
    if next(CronSim(fields, local_time - _SECOND), None) == local_time:
        return None
    gap_start = zones.local_time_of(zone, at - _SECOND) + _SECOND
    found = next(CronSim(fields, gap_start - _SECOND), None)
    return found if found is not None and found < local_time else None


def explain(text: str) -> str:
    """A sentence in English for an expression; raises InvalidSchedule as `parse` does."""
    parse(text)
    return cron_descriptions.sentence(cron_expressions.read(text))
