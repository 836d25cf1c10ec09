"""Time zones: found by name, and what their clocks show around a change.

A *local time* is what a clock in the zone shows: a date and time without an offset. Over a year a
zone's clock may skip local times (the gap, when it is put forward) and show some twice (the fold,
when it is put back):

    local   01:30    02:30    03:30         local   01:30    01:30    02:30
            ─────┬╌╌╌gap╌╌╌┬─────                   ─────┬──fold──┬─────
    UTC     06:30│         │07:30           UTC     05:30│  06:30 │07:30
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.suggestions import closest

# Names of files beside the zones: whatever this machine is set to, nothing, or leap seconds.
_NOT_ZONES = ("localtime", "posixrules", "Factory", "posix/", "right/")
_LONGEST_NAME = 64
# Names for an offset in some part of the year, which many places share; no zone has them.
ABBREVIATIONS = {
    "ACST": ("Australia/Adelaide",),
    "AEDT": ("Australia/Sydney",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AST": ("America/Halifax", "Asia/Riyadh"),
    "AWST": ("Australia/Perth",),
    "BRT": ("America/Sao_Paulo",),
    "BST": ("Europe/London", "Asia/Dhaka"),
    "CDT": ("America/Chicago",),
    "CEST": ("Europe/Berlin", "Europe/Paris"),
    "CST": ("America/Chicago", "Asia/Shanghai"),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Helsinki", "Europe/Athens"),
    "EST": ("America/New_York",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "MST": ("America/Denver",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PST": ("America/Los_Angeles", "Asia/Manila"),
    "SAST": ("Africa/Johannesburg",),
    "SGT": ("Asia/Singapore",),
    "WEST": ("Europe/Lisbon",),
}
_OFFSET = re.compile("([A-Z]{0,4})([+-]?)([0-9]{1,2})(:?00)?")
_OFFSET_NAMES = ("", "UTC", "GMT")
# Zones of offsets that there are, by the side of UTC.
_MOST_HOURS = {"+": 14, "-": 12}
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1024)
def _load_zone(name: str) -> ZoneInfo | None:
    if len(name) > _LONGEST_NAME or name.startswith(_NOT_ZONES):
        return None
    try:
        return ZoneInfo(name)
    # A folder such as America, a path out of the folder, a name with NUL in it.
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def find_zone(name: str) -> ZoneInfo:
    """The IANA zone of this name; raises InvalidSchedule with the nearest name."""
    if not isinstance(name, str):
        raise InvalidSchedule("zone", f"must be a string, not {type(name).__name__}")
    zone = _load_zone(name)
    if zone is None:
        short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        raise InvalidSchedule("zone", f"there is no time zone {short!r}; {_hint(short)}")
    return zone


def hint_of_offset(name: str) -> str | None:
    """What to say of an offset such as UTC+3 or EST5, which is no zone; None for any other name."""
    found = _OFFSET.fullmatch(name.upper())
    if found is None:
        return None
    letters, sign, hours = found[1], found[2], int(found[3])
    if meant := ABBREVIATIONS.get(letters):
        return f"did you mean {' or '.join(map(repr, meant))}?"
    most = _MOST_HOURS.get(sign, 0)
    if letters not in _OFFSET_NAMES or not 1 <= hours <= most:
        return None
    turned, side = ("-", "ahead of") if sign == "+" else ("+", "behind")
    return (
        f"did you mean 'Etc/GMT{turned}{hours}'? That is {hours} hours {side} UTC: the signs of "
        "these zones are reversed"
    )


def _hint(name: str) -> str:
    if meant := ABBREVIATIONS.get(name.upper()):
        return f"did you mean {' or '.join(map(repr, meant))}?"
    if (said := hint_of_offset(name)) is not None:
        return said
    known = sorted(zone for zone in available_timezones() if zone not in _NOT_ZONES)
    cities = {zone.rpartition("/")[2].lower(): zone for zone in known}
    spellings = cities | {zone.lower(): zone for zone in known}
    near = closest(name.lower().replace(" ", "_"), spellings)
    return (
        "use a name such as 'Europe/Berlin'"
        if near is None
        else f"did you mean {spellings[near]!r}?"
    )


def local_time_of(zone: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def offsets(zone: ZoneInfo, local_time: datetime) -> tuple[timedelta, timedelta]:
    """UTC offsets before and after a change: the second is larger in a gap, smaller in a fold."""
    before, after = (local_time.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return before or timedelta(0), after or timedelta(0)


def to_utc(local_time: datetime, offset: timedelta) -> datetime:
    return (local_time - offset).replace(tzinfo=UTC)


def change_between(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second after `before`, at the latest `after`, with another offset than `before`."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // (2 * _SECOND) * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after
