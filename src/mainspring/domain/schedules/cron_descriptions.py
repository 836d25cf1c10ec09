"""A cron expression in English: the time of day first, then the days.

Every field is put into words by itself; the common shapes (clock times, even steps, runs of
hours) have shorter words of their own. What is said follows the values a field matches, not
how it was written, so 0-59/15 and */15 read the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from mainspring.domain.schedules.cron_expressions import Expression
from mainspring.domain.schedules.cron_fields import (
    DAY,
    FIELDS,
    MONTH,
    MONTH_NAMES,
    WEEKDAY,
    WEEKDAY_NAMES,
    Field,
    Item,
    Items,
    Kind,
)

_MOST_CLOCK_TIMES = 4
_LARGEST_COUNT = 120
_BY_NAME = "chosen from the schedule's name"
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_NOUNS = {"day of month": "day", "day of week": "weekday"}
_COUNTED = {Kind.LAST_WEEKDAY, Kind.NTH_WEEKDAY}
_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def sentence(expression: Expression) -> str:
    if isinstance(expression, timedelta):
        return _interval(expression)
    minute, hour, day, month, weekday = (
        _Part.of(field, items) for field, items in zip(FIELDS, expression, strict=True)
    )
    time = _time(minute, hour)
    is_clock = time.startswith("at ")
    days = _days(day, month, weekday, is_all_day=hour.is_even and not is_clock)
    has_parts = ", " in time and not is_clock
    text = f"{time},{days}" if has_parts and days.startswith(" ") else time + days
    return text[0].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class _Part:
    """A field by what it matches: numbers in order, and items that are no plain numbers."""

    field: Field
    values: tuple[int, ...]
    others: tuple[Item, ...]
    is_star: bool

    @staticmethod
    def of(field: Field, items: Items) -> "_Part":
        numbers = {value for item in items if item.is_numeric for value in item.values}
        if field is WEEKDAY:
            # The week of this sentence begins on Monday and Sunday is 7.
            numbers = {value or 7 for value in numbers}
        others = tuple(item for item in items if not item.is_numeric)
        return _Part(field, tuple(sorted(numbers)), others, items[0].kind is Kind.STAR)

    @property
    def is_all(self) -> bool:
        return len(self.values) == self.field.size

    @property
    def step(self) -> int | None:
        """The distance of two or more values, if it is the same all along."""
        steps = {later - earlier for earlier, later in pairwise(self.values)}
        return steps.pop() if len(steps) == 1 else None

    @property
    def is_even(self) -> bool:
        """Whether the values come at the same distance over the end of the field too."""
        return (
            not self.others
            and self.step is not None
            and self.values[0] == self.field.low
            and self.step * len(self.values) == self.field.size
        )

    @property
    def is_run(self) -> bool:
        return not self.others and (len(self.values) == 1 or self.step == 1)

    @property
    def is_single(self) -> bool:
        """Whether it comes once in the range of the field."""
        if self.others:
            return not self.values and [item.kind for item in self.others] == [Kind.ONE_OF]
        return len(self.values) == 1

    @property
    def is_any(self) -> bool:
        """Whether it is `H` and nothing else."""
        whole = Item(Kind.ONE_OF, self.field.low, self.field.spread_high)
        return not self.values and self.others == (whole,)


def _interval(every: timedelta) -> str:
    seconds = int(every.total_seconds())
    for unit, size in _UNITS.items():
        count, rest = divmod(seconds, size)
        if rest == 0 and (unit, count) != ("day", 1) and count < _LARGEST_COUNT:
            return f"Every {unit}" if count == 1 else f"Every {count} {unit}s"
    parts = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(_plural(count, unit))
    return f"Every {_join(parts)}"


def _time(minute: _Part, hour: _Part) -> str:
    if minute.is_any and hour.is_any:
        return f"at a time {_BY_NAME}"
    if minute.others or hour.others:
        return f"{_hours(hour, minute)}, {_minutes(minute)}"
    if len(minute.values) * len(hour.values) <= _MOST_CLOCK_TIMES:
        return f"at {_join([_clock(at, past) for at in hour.values for past in minute.values])}"
    if hour.is_all and minute.is_even:
        return _every(minute)
    if not hour.is_even and (words := _time_in_hours(minute, hour)):
        return words
    return f"{_hours(hour, minute)}, {_minutes(minute)}"


def _time_in_hours(minute: _Part, hour: _Part) -> str:
    """Words for hours such as 9 to 17; empty if hours or minutes have no simple shape."""
    begin = _clock(hour.values[0], minute.values[0])
    end = _clock(hour.values[-1], minute.values[-1])
    is_one_hour = len(hour.values) == 1
    if minute.is_single and hour.step:
        return f"{_every(hour)} from {begin} to {end}"
    if hour.is_run and (minute.is_even or (is_one_hour and minute.step)):
        return f"{_every(minute)} from {begin} to {end}"
    return ""


def _hours(hour: _Part, minute: _Part) -> str:
    if hour.is_all or (hour.is_even and minute.is_single):
        return _every(hour)
    return f"in {_words(hour)}"


def _minutes(minute: _Part) -> str:
    return _every(minute) if minute.is_even else f"at {_words(minute)}"


def _every(part: _Part) -> str:
    return f"every {part.field.name}" if part.step == 1 else f"every {part.step} {part.field.name}s"


def _days(day: _Part, month: _Part, weekday: _Part, *, is_all_day: bool) -> str:
    is_either = not (day.is_star or weekday.is_star)
    if (day.is_all and weekday.is_all) or (is_either and (day.is_all or weekday.is_all)):
        if month.is_all:
            return "" if is_all_day else " every day"
        return f" every day in {_words(month)}"
    if weekday.is_all:
        return f" on {_dates(day, month)}"
    if day.is_all:
        joint = ", " if weekday.is_run and len(weekday.values) > 2 else " on "
        return joint + _weekdays(weekday, month)
    if is_either:
        return f" on {_dates(day, month)}, and also on {_weekdays(weekday, month)}"
    return f" on {_dates(day, month)}, but only on {_words(weekday)}"


def _dates(day: _Part, month: _Part) -> str:
    if len(day.values) == len(month.values) == 1 and not (day.others or month.others):
        return f"{day.values[0]} {_words(month)}"
    return f"{_words(day)} of {_months(month)}"


def _weekdays(weekday: _Part, month: _Part) -> str:
    if any(item.kind in _COUNTED for item in weekday.others):
        return f"{_words(weekday)} of {_months(month)}"
    return _words(weekday) if month.is_all else f"{_words(weekday)} in {_words(month)}"


def _months(month: _Part) -> str:
    return "every month" if month.is_all else _words(month)


def _words(part: _Part) -> str:
    numbers = [_numbers(part)] if part.values else []
    return _join([*numbers, *(_other(part.field, item) for item in part.others)])


def _numbers(part: _Part) -> str:
    if part.field is MONTH or part.field is WEEKDAY:
        return _join(_runs(part))
    noun = _noun(part.field) if len(part.values) == 1 else f"{_noun(part.field)}s"
    if len(part.values) > 3 and part.step not in {None, 1}:
        return f"{noun} {part.values[0]} to {part.values[-1]} in steps of {part.step}"
    return f"{noun} {_join(_runs(part))}"


def _runs(part: _Part) -> list[str]:
    """The values one by one, but three or more in a row as `first to last`."""
    runs: list[list[int]] = []
    for value in part.values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words = []
    for run in runs:
        labels = [_label(part.field, value) for value in run]
        words += [f"{labels[0]} to {labels[-1]}"] if len(run) > 2 else labels
    return words


def _other(field: Field, item: Item) -> str:
    match item.kind:
        case Kind.LAST_DAY:
            return "the last day"
        case Kind.LAST_WORKDAY:
            return "the last weekday (Monday to Friday)"
        case Kind.LAST_WEEKDAY:
            return f"the last {_label(field, item.first)}"
        case Kind.NTH_WEEKDAY:
            return f"the {_ORDINALS[item.step]} {_label(field, item.first)}"
        case _:
            return _spread(field, item)


def _spread(field: Field, item: Item) -> str:
    noun = _noun(field)
    span = f"from {_label(field, item.first)} to {_label(field, item.last)}"
    if item.kind is Kind.STEPS_IN:
        return f"{noun}s {span} in steps of {item.step}, the first {_BY_NAME}"
    is_whole = (item.first, item.last) == (field.low, field.spread_high) and field is not DAY
    article = "an" if noun == "hour" else "a"
    return f"{article} {noun} {'' if is_whole else f'{span} '}{_BY_NAME}"


def _noun(field: Field) -> str:
    return _NOUNS.get(field.name, field.name)


def _label(field: Field, value: int) -> str:
    if field is MONTH:
        return MONTH_NAMES[value - 1]
    return WEEKDAY_NAMES[value % 7] if field is WEEKDAY else str(value)


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _join(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
