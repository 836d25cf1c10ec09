"""Which days are free, and where a slot goes that falls on one.

A calendar works in local time of the schedule's zone. A day is free for its weekday, as a
public holiday or as one of the schedule's own dates, unless it is listed as a workday; a
blackout closes a stretch of time whatever day it is. A slot in closed time is skipped, or
moved at the same local time to the nearest open day after or before it.
"""

import re
import reprlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.suggestions import closest

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT_WEEKDAYS = tuple(name[:3].lower() for name in _WEEKDAYS)
_SATURDAY_AND_SUNDAY = frozenset({6, 7})
_KEYS = ("weekends", "country", "subdivision", "dates", "workdays", "blackouts", "when_closed")
_BLACKOUT_KEYS = ("from", "to", "label")
_MOST_DATES = 1000
_MOST_BLACKOUTS = 200
_LONGEST_LABEL = 200
_FARTHEST_MOVE = 366
_SUBDIVISIONS_SHOWN = 60


class WhenClosed(StrEnum):
    """What becomes of a slot in closed time."""

    SKIP = "skip"
    NEXT = "next"
    PREVIOUS = "previous"


@dataclass(frozen=True, slots=True)
class Blackout:
    """A half-open stretch of naive local time in which nothing is due."""

    start: datetime
    end: datetime
    label: str = "blackout"

    def __post_init__(self) -> None:
        if self.start.tzinfo or self.end.tzinfo:
            raise _wrong(
                "blackouts are in the local time of the schedule's zone, without an offset"
            )
        if self.start >= self.end:
            raise _wrong(
                f"a blackout must begin before it ends, not from {self.start} to {self.end}"
            )
        if not (0 < len(self.label) <= _LONGEST_LABEL and self.label.isprintable()):
            raise _wrong(f"a blackout's label must be 1 to {_LONGEST_LABEL} printable characters")


@dataclass(frozen=True, slots=True)
class Calendar:
    """The free time of a schedule; `weekends` holds ISO weekdays, Monday being 1."""

    weekends: frozenset[int] = frozenset()
    country: str | None = None
    subdivision: str | None = None
    dates: frozenset[date] = frozenset()
    workdays: frozenset[date] = frozenset()
    blackouts: tuple[Blackout, ...] = ()
    when_closed: WhenClosed = WhenClosed.SKIP

    def __post_init__(self) -> None:
        if not self.weekends <= frozenset(range(1, 8)):
            raise _wrong(f"weekends must be ISO weekdays 1 to 7, not {sorted(self.weekends)}")
        _ensure_at_most(_MOST_DATES, "dates", self.dates)
        _ensure_at_most(_MOST_DATES, "workdays", self.workdays)
        _ensure_at_most(_MOST_BLACKOUTS, "blackouts", self.blackouts)
        _ensure_region(self.country, self.subdivision)


def why_closed(calendar: Calendar, moment: datetime) -> str | None:
    """What closes the naive local time, in words; None when it is open."""
    return why_free(calendar, moment.date()) or next(
        (each.label for each in calendar.blackouts if each.start <= moment < each.end), None
    )


def place(calendar: Calendar, moment: datetime) -> datetime | None:
    """The naive local time itself or where it is moved; None when it is skipped, also when no
    day within 366 days is open at that time."""
    if why_closed(calendar, moment) is None:
        return moment
    if calendar.when_closed is WhenClosed.SKIP:
        return None
    step = 1 if calendar.when_closed is WhenClosed.NEXT else -1
    days = _days(moment.date(), step, _FARTHEST_MOVE + 1)
    moved = (datetime.combine(day, moment.time()) for day in days)
    return next((each for each in moved if why_closed(calendar, each) is None), None)


def why_free(calendar: Calendar, day: date) -> str | None:
    if day in calendar.workdays:
        return None
    if day.isoweekday() in calendar.weekends:
        return _WEEKDAYS[day.weekday()]
    if calendar.country and (holiday := _holiday(calendar.country, calendar.subdivision, day)):
        return holiday
    return f"{day} is free" if day in calendar.dates else None


def _days(first: date, step: int, count: int) -> Iterator[date]:
    """That many days from the first on, fewer where the years of `date` end."""
    begin, last = first.toordinal(), date.max.toordinal()
    ordinals = range(begin, begin + step * count, step)
    return (date.fromordinal(each) for each in ordinals if 1 <= each <= last)


def _holiday(country: str, subdivision: str | None, day: date) -> str | None:
    name = _holidays_of(country, subdivision, day.year).get(day)
    region = f"{country}-{subdivision}" if subdivision else country
    return name and f"{name} ({region})"


@lru_cache(maxsize=4096)
def _holidays_of(country: str, subdivision: str | None, year: int) -> Mapping[date, str]:
    """The public holidays of a year, named in the country's language and in English."""
    from holidays import country_holidays  # noqa: PLC0415 - slow, and most schedules have none

    named: dict[date, list[str]] = {}
    for language in _languages(country):
        found = country_holidays(country, subdivision, years=year, language=language)
        for day, name in found.items():
            named.setdefault(day, []).append(name)
    return MappingProxyType(
        {day: "/".join(dict.fromkeys(names)) for day, names in named.items() if day.year == year}
    )


def _languages(country: str) -> list[str | None]:
    """The country's own language and English, as far as the library has them."""
    entity = _entity(country)
    wanted = dict.fromkeys((entity.default_language, "en_US"))
    # The library takes None for the language of the process, but then it has only one.
    return [each for each in wanted if each in entity.supported_languages] or [None]


def _entity(country: str) -> Any:
    import holidays  # noqa: PLC0415 - slow, and most schedules have none

    return getattr(holidays, country)


@lru_cache(maxsize=1)
def _countries() -> Mapping[str, tuple[str, ...]]:
    """Each two-letter code with the English name, then what else the country goes by."""
    from holidays.registry import COUNTRIES  # noqa: PLC0415 - slow, and most schedules have none

    return {
        code: (re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name), *others)
        for name, code, *others in COUNTRIES.values()
    }


def _ensure_region(country: str | None, subdivision: str | None) -> None:
    if country is None:
        if subdivision is not None:
            raise _wrong("subdivision needs a country")
        return
    if country not in _countries():
        raise _unknown_country(country)
    if subdivision is not None and subdivision not in _entity(country).subdivisions:
        raise _unknown_subdivision(country, subdivision)


def _unknown_country(country: str) -> InvalidSchedule:
    codes = {code.casefold(): code for code in _countries()}
    for code, names in _countries().items():
        codes.update((name.casefold(), code) for name in names)
    hint = _hint(country.casefold(), codes)
    return _wrong(
        f"there is no country {reprlib.repr(country)}; {hint}"
        "give a two-letter code such as DE, FR or US"
    )


def _unknown_subdivision(country: str, subdivision: str) -> InvalidSchedule:
    name = _countries()[country][0]
    known = sorted(_entity(country).subdivisions)
    if not known:
        return _wrong(f"{name} has no subdivisions; remove {reprlib.repr(subdivision)}")
    aliases = _entity(country).subdivisions_aliases
    codes = {each.casefold(): each for each in known}
    codes.update((alias.casefold(), code) for alias, code in aliases.items())
    hint = _hint(subdivision.casefold(), codes)
    listed = ", ".join(known[:_SUBDIVISIONS_SHOWN])
    more = " and others" if len(known) > _SUBDIVISIONS_SHOWN else ""
    return _wrong(
        f"{name} has no subdivision {reprlib.repr(subdivision)}; {hint}it has {listed}{more}"
    )


def from_json(data: object) -> Calendar:
    """Read a calendar; a key that is null counts as left out."""
    fields = _object(data, "it", _KEYS)
    return Calendar(
        weekends=_weekends(fields.get("weekends", False)),
        country=_text(fields, "country"),
        subdivision=_text(fields, "subdivision"),
        dates=_dates(fields, "dates"),
        workdays=_dates(fields, "workdays"),
        blackouts=tuple(map(_blackout, _list(fields, "blackouts", most=_MOST_BLACKOUTS))),
        when_closed=_when_closed(fields.get("when_closed", WhenClosed.SKIP)),
    )


def to_json(calendar: Calendar) -> dict[str, Any]:
    """What `from_json` reads, without the keys that say nothing."""
    is_usual = calendar.weekends == _SATURDAY_AND_SUNDAY
    names = [_SHORT_WEEKDAYS[weekday - 1] for weekday in sorted(calendar.weekends)]
    fields: dict[str, Any] = {
        "weekends": is_usual or names,
        "country": calendar.country,
        "subdivision": calendar.subdivision,
        "dates": [day.isoformat() for day in sorted(calendar.dates)],
        "workdays": [day.isoformat() for day in sorted(calendar.workdays)],
        "blackouts": [_blackout_json(each) for each in calendar.blackouts],
        "when_closed": str(calendar.when_closed),
    }
    return {key: value for key, value in fields.items() if value}


def _blackout_json(blackout: Blackout) -> dict[str, str]:
    return {
        "from": blackout.start.isoformat(),
        "to": blackout.end.isoformat(),
        "label": blackout.label,
    }


def _object(data: object, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(f"{what} must be an object, not {reprlib.repr(data)}")
    for key in data:
        if key not in keys:
            hint = _hint(str(key), dict(zip(keys, keys, strict=True)))
            raise _wrong(f"unknown key {reprlib.repr(key)}; {hint}the keys are {', '.join(keys)}")
    return {key: value for key, value in data.items() if value is not None}


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong(f"{key} must be a string, not {reprlib.repr(value)}")
    return value


def _list(fields: Mapping[str, Any], key: str, *, most: int) -> list[Any]:
    """Counted before each is looked at, of which there may be very many."""
    value = fields.get(key, [])
    if not isinstance(value, list):
        raise _wrong(f"{key} must be a list, not {reprlib.repr(value)}")
    _ensure_at_most(most, key, value)
    return value


def _weekends(value: object) -> frozenset[int]:
    if isinstance(value, bool):
        return _SATURDAY_AND_SUNDAY if value else frozenset()
    allowed = f"weekends must be true, false or a list of {', '.join(_SHORT_WEEKDAYS)}"
    if not isinstance(value, list):
        raise _wrong(f"{allowed}, not {reprlib.repr(value)}")
    for name in value:
        if name not in _SHORT_WEEKDAYS:
            raise _wrong(f"{allowed}; {reprlib.repr(name)} is not one of them")
    return frozenset(_SHORT_WEEKDAYS.index(name) + 1 for name in value)


def _dates(fields: Mapping[str, Any], key: str) -> frozenset[date]:
    return frozenset(_date(key, each) for each in _list(fields, key, most=_MOST_DATES))


def _date(key: str, text: object) -> date:
    problem = f"{key} must be written like 2026-12-24, not {reprlib.repr(text)}"
    if not isinstance(text, str):
        raise _wrong(problem)
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise _wrong(problem) from error
    # The standard library also reads 20261224 and week dates.
    if day.isoformat() != text:
        raise _wrong(problem)
    return day


def _blackout(data: object) -> Blackout:
    fields = _object(data, "a blackout", _BLACKOUT_KEYS)
    label = _text(fields, "label")
    start, end = _local_time(fields, "from"), _local_time(fields, "to")
    return Blackout(start, end) if label is None else Blackout(start, end, label)


def _local_time(fields: Mapping[str, Any], key: str) -> datetime:
    text = _text(fields, key)
    if text is None:
        raise _wrong(f"a blackout needs {key!r}")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise _wrong(
            f"{key!r} of a blackout must be written like 2026-12-20T00:00, not {reprlib.repr(text)}"
        ) from error


def _when_closed(value: object) -> WhenClosed:
    try:
        return WhenClosed(value)  # type: ignore[arg-type]
    except ValueError as error:
        raise _wrong(
            f"when_closed must be {', '.join(WhenClosed)}, not {reprlib.repr(value)}"
        ) from error


def _ensure_at_most(most: int, key: str, values: Collection[Any]) -> None:
    if len(values) > most:
        raise _wrong(f"{key} may contain at most {most:,}, not {len(values):,}")


def _hint(word: str, known: Mapping[str, str]) -> str:
    """A guess at what was meant; `known` leads from each spelling to what should be written."""
    near = closest(word, known)
    return f"did you mean {known[near]!r}? " if near else ""


def _wrong(problem: str) -> InvalidSchedule:
    return InvalidSchedule("calendar", problem)
