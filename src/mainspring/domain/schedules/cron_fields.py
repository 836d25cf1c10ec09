"""The five fields of a cron expression: what each may hold, read item by item.

An item is read into numbers and written again in plain form, so that the library underneath
never sees a name, a `?`, an `H` or anything else it would refuse or read in its own way.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from hashlib import sha256

from mainspring.domain.errors import InvalidSchedule

MOST_ITEMS = 60

_SPREAD = re.compile(r"H(?:\((?P<range>\w+-\w+)\))?", re.ASCII)
_NTH_WEEKDAY = re.compile(r"(?P<day>\w+)#(?P<nth>\w+)", re.ASCII)
_LAST_WEEKDAY = re.compile(r"(?P<day>\d+)L", re.ASCII)
_UNITS = {"minute": "m", "hour": "h", "day of month": "d"}
_FORMS = {
    "day of month": "*, ranges, steps, lists, L, LW and H",
    "day of week": "*, ranges, steps, lists, 5L, MON#1 and H",
}
_NTHS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True, slots=True)
class Field:
    """One place of the expression; a bare `H` chooses from `low` to `spread_high`."""

    name: str
    low: int
    high: int
    spread_high: int
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many different values there are."""
        return len(self.names) or self.high - self.low + 1

    def refusal(self, problem: str) -> InvalidSchedule:
        return InvalidSchedule(f"cron {self.name}", problem)


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:3].upper() for name in names)


MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

MINUTE = Field("minute", 0, 59, 59)
HOUR = Field("hour", 0, 23, 23)
# Every month has the first 28 days.
DAY = Field("day of month", 1, 31, 28)
MONTH = Field("month", 1, 12, 12, _short(MONTH_NAMES))
# Sunday is both 0 and 7.
WEEKDAY = Field("day of week", 0, 7, 6, _short(WEEKDAY_NAMES))
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class Kind(Enum):
    """What an item means."""

    STAR = auto()  # *, ?, */2
    RANGE = auto()  # 5, 1-5, 1-5/2, 5/15
    ONE_OF = auto()  # H, H(0-5)
    STEPS_IN = auto()  # H/15, H(0-29)/10
    LAST_DAY = auto()  # L
    LAST_WORKDAY = auto()  # LW
    LAST_WEEKDAY = auto()  # 5L
    NTH_WEEKDAY = auto()  # MON#1: the step is which one


@dataclass(frozen=True, slots=True)
class Item:
    """One element of a field's list; `first` and `last` are both included."""

    kind: Kind
    first: int
    last: int
    step: int = 1

    @property
    def values(self) -> range:
        return range(self.first, self.last + 1, self.step)

    @property
    def is_numeric(self) -> bool:
        return self.kind in {Kind.STAR, Kind.RANGE}


Items = tuple[Item, ...]


def read_field(field: Field, text: str) -> Items:
    parts = text.upper().split(",")
    if len(parts) > MOST_ITEMS:
        raise field.refusal(f"the list has {len(parts)} items; {MOST_ITEMS} are allowed")
    return tuple(_read_item(field, part) for part in parts)


def spread(field: Field, items: Items, key: str) -> Items:
    """The items with every `H` replaced by what the key gives, the same for ever."""
    return tuple(_spread_item(field, item, key) for item in items)


def plain(items: Items) -> str:
    """The field as text; `H` must have been spread before."""
    return ",".join(_plain_item(item) for item in items)


def _read_item(field: Field, text: str) -> Item:
    if not text:
        raise field.refusal("an item of the list is empty")
    if special := _read_special(field, text):
        return special
    base, slash, step_text = text.partition("/")
    step = _read_step(field, text, step_text) if slash else 1
    if base in {"*", "?"}:
        return Item(Kind.STAR, field.low, field.high, step)
    if found := _SPREAD.fullmatch(base):
        kind = Kind.STEPS_IN if slash else Kind.ONE_OF
        range_text = found["range"]
        whole = field.low, field.spread_high
        return Item(kind, *(_read_range(field, text, range_text) if range_text else whole), step)
    first, last = _read_range(field, text, base)
    return Item(Kind.RANGE, first, field.high if slash and "-" not in base else last, step)


def _read_special(field: Field, text: str) -> Item | None:
    if field is DAY and text in {"L", "LW"}:
        kind = Kind.LAST_DAY if text == "L" else Kind.LAST_WORKDAY
        return Item(kind, field.high, field.high)
    if field is not WEEKDAY:
        return None
    if found := _LAST_WEEKDAY.fullmatch(text):
        day = _read_value(field, text, found["day"])
        return Item(Kind.LAST_WEEKDAY, day, day)
    if found := _NTH_WEEKDAY.fullmatch(text):
        day = _read_value(field, text, found["day"])
        if found["nth"] not in _NTHS:
            raise field.refusal(f"{text} asks for week {found['nth']} of a month; use 1 to 5")
        return Item(Kind.NTH_WEEKDAY, day, day, int(found["nth"]))
    return None


def _read_step(field: Field, item_text: str, text: str) -> int:
    if not text.isdigit():
        raise field.refusal(f"the step of {item_text} is not a whole number")
    step = int(text)
    if step == 0:
        raise field.refusal(f"{item_text} has a step of zero")
    if step > field.size:
        unit = _UNITS.get(field.name)
        hint = f"; for a fixed interval write @every {step}{unit}" if unit else ""
        raise field.refusal(
            f"{item_text} has a step larger than {field.size}, which is never reached{hint}"
        )
    return step


def _read_range(field: Field, item_text: str, text: str) -> tuple[int, int]:
    """First and last value; they are the same for a single value."""
    first_text, dash, last_text = text.partition("-")
    first = _read_value(field, item_text, first_text)
    if not dash:
        return first, first
    last = _read_value(field, item_text, last_text)
    if last_text == "SUN" and first > 0:
        last = 7
    if last < first:
        halves = f"{first}-{field.high},{field.low}-{last}"
        raise field.refusal(f"{text} runs backwards; write {halves} to wrap around")
    return first, last


def _read_value(field: Field, item_text: str, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not text.isdigit():
        raise field.refusal(f"{item_text!r} is not understood; allowed are {_allowed(field)}")
    value = int(text)
    if not field.low <= value <= field.high:
        raise field.refusal(f"{text} is not from {field.low} to {field.high}")
    return value


def _allowed(field: Field) -> str:
    words = [f"{field.low} to {field.high}"]
    if field.names:
        words.append(f"{field.names[0]} to {field.names[-1]}")
    words.append(_FORMS.get(field.name, "*, ranges, steps, lists and H"))
    return ", ".join(words)


def _spread_item(field: Field, item: Item, key: str) -> Item:
    if item.kind not in {Kind.ONE_OF, Kind.STEPS_IN}:
        return item
    size = item.last - item.first + 1
    if item.kind is Kind.ONE_OF:
        value = item.first + _hash(field, key) % size
        return Item(Kind.RANGE, value, value)
    first = item.first + _hash(field, key) % min(item.step, size)
    return Item(Kind.RANGE, first, item.last, item.step)


def _hash(field: Field, key: str) -> int:
    # Not hash(): it differs between processes. The field's name makes fields independent.
    salted = f"{field.name}\0{key}".encode(errors="surrogatepass")
    return int.from_bytes(sha256(salted).digest()[:8])


def _plain_item(item: Item) -> str:
    match item.kind:
        case Kind.STAR:
            return "*" if item.step == 1 else f"*/{item.step}"
        case Kind.LAST_DAY:
            return "L"
        case Kind.LAST_WORKDAY:
            return "LW"
        case Kind.LAST_WEEKDAY:
            return f"{item.first}L"
        case Kind.NTH_WEEKDAY:
            return f"{item.first}#{item.step}"
        case _:
            return _plain_range(item)


def _plain_range(item: Item) -> str:
    # cronsim reads 5-5/10 as 5-59/10, so a range of one value is written as the value.
    if len(item.values) == 1:
        return f"{item.first}"
    steps = "" if item.step == 1 else f"/{item.step}"
    return f"{item.first}-{item.last}{steps}"
