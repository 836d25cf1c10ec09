"""What clocks around the world really show, and cron by brute force: slow, plain and by itself.

Nothing here uses the code under test: a rule is judged minute by minute in UTC, by what the
zone's clock shows at that minute.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
AROUND = timedelta(hours=14)
SINCE = datetime(2019, 1, 1, tzinfo=UTC)
UNTIL = datetime(2029, 1, 1, tzinfo=UTC)
ZONES = sorted(available_timezones() - {"localtime", "Factory"})


@dataclass(frozen=True)
class Change:
    """At `at` the offset of the zone goes from `before` to `after`."""

    zone: ZoneInfo
    at: datetime
    before: timedelta
    after: timedelta

    @property
    def edges(self) -> tuple[datetime, datetime]:
        """The local times that are skipped, or shown twice: from the first up to the second."""
        local_time = self.at.replace(tzinfo=None)
        return local_time + min(self.before, self.after), local_time + max(self.before, self.after)

    def showings(self, local_time: datetime) -> list[datetime]:
        """The instants at which the clock shows this local time, near this change."""
        early = (local_time - self.before).replace(tzinfo=UTC)
        late = (local_time - self.after).replace(tzinfo=UTC)
        return [*([early] if early < self.at else []), *([late] if late >= self.at else [])]


@dataclass(frozen=True)
class Rule:
    """An expression and, written down apart from it, what it is to match."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] = frozenset(range(1, 32))
    weekdays: frozenset[int] = frozenset(range(1, 8))

    @property
    def is_fixed(self) -> bool:
        minute, hour, *_ = self.text.split()
        return minute[0] != "*" and hour[0] != "*"

    def matches(self, local_time: datetime) -> bool:
        _, _, day, _, weekday = self.text.split()
        on_day, on_weekday = local_time.day in self.days, local_time.isoweekday() in self.weekdays
        is_either = day[0] != "*" and weekday[0] != "*"
        on_date = (on_day or on_weekday) if is_either else (on_day and on_weekday)
        return local_time.minute in self.minutes and local_time.hour in self.hours and on_date


@cache
def changes(name: str) -> list[Change]:
    """Every change of the zone's offset in ten years, to the minute. No zone changes it twice in a
    week: the closest two are those around Ramadan."""
    zone, found = ZoneInfo(name), []
    week, offset = SINCE, offset_at(zone, SINCE)
    while week < UNTIL:
        following = min(week + WEEK, UNTIL)
        if (then := offset_at(zone, following)) != offset:
            found.append(_change_between(zone, week, following))
        week, offset = following, then
    return found


@cache
def distinct() -> list[str]:
    """One zone of each set whose clocks all changed alike, if they changed at all."""
    alike = {tuple((each.at, each.after) for each in changes(name)): name for name in ZONES}
    return sorted(name for name in alike.values() if changes(name))


def _change_between(zone: ZoneInfo, start: datetime, end: datetime) -> Change:
    before = offset_at(zone, start)
    minutes = range((end - start) // MINUTE)
    passed = bisect_left(
        minutes, True, key=lambda minute: offset_at(zone, start + minute * MINUTE) != before
    )
    at = start + passed * MINUTE
    return Change(zone, at, before, offset_at(zone, at))


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def brute_force(
    rule: Rule, change: Change, *, skips_gap: bool, repeats_fold: bool
) -> Iterator[datetime]:
    """Every fire less than 14 hours from the change, minute by minute."""
    start = change.at - AROUND
    latest = start.astimezone(change.zone).replace(tzinfo=None, fold=0) - MINUTE
    for step in range(2 * AROUND // MINUTE):
        instant = start + step * MINUTE
        local_time = instant.astimezone(change.zone).replace(tzinfo=None, fold=0)
        is_again = local_time <= latest
        is_moved = rule.is_fixed and not skips_gap and _any_skipped(rule, latest, local_time)
        is_silent = rule.is_fixed and is_again and not repeats_fold
        if is_moved or (rule.matches(local_time) and not is_silent):
            yield instant
        latest = max(latest, local_time)


def _any_skipped(rule: Rule, latest: datetime, local_time: datetime) -> bool:
    skipped = latest + MINUTE
    while skipped < local_time:
        if rule.matches(skipped):
            return True
        skipped += MINUTE
    return False
