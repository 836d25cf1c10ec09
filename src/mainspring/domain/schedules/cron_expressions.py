"""A cron expression as text: five fields, a name such as @daily, or @every and a duration."""

import re
from datetime import timedelta

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron_fields import FIELDS, Items, read_field
from mainspring.domain.suggestions import did_you_mean

LONGEST_TEXT = 200
SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(days=366)
NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_PLACES = "minute hour day month weekday"
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_UNIT_SECONDS = (86_400, 3_600, 60, 1)

Expression = timedelta | tuple[Items, ...]


def read(text: str) -> Expression:
    """The interval of @every, or the items of the five fields with `H` still in them."""
    ensure_plain(text)
    words = text.split()
    if not words:
        raise InvalidSchedule("cron", f"is empty; five fields are needed ({_PLACES}), or @daily")
    if words[0].startswith("@"):
        return _read_name(words)
    if words[0].upper().startswith(("CRON_TZ=", "TZ=")):
        raise InvalidSchedule("cron", f"{words[0]} is not supported here; set zone instead")
    if len(words) != len(FIELDS):
        raise InvalidSchedule("cron", _wrong_count(words))
    return tuple(read_field(field, word) for field, word in zip(FIELDS, words, strict=True))


def ensure_plain(text: str) -> None:
    """Refuse, before anything reads it, what no expression can be."""
    if not isinstance(text, str):
        raise InvalidSchedule("cron", f"must be a string, not {type(text).__name__}")
    if len(text) > LONGEST_TEXT:
        raise InvalidSchedule(
            "cron", f"is {len(text):,} characters long; {LONGEST_TEXT} are allowed"
        )
    strange = next((sign for sign in text if not (" " <= sign <= "~" or sign == "\t")), None)
    if strange is not None:
        raise InvalidSchedule("cron", f"the character {strange!a} is not allowed")


def _wrong_count(words: list[str]) -> str:
    problem = f"five fields are needed ({_PLACES}), not '{' '.join(words)}'"
    if len(words) == 6:
        return f"{problem}; for seconds use @every, such as @every 90s"
    if len(words) == 1 and f"@{words[0].lower()}" in NAMED:
        return f"{problem}; did you mean @{words[0].lower()}?"
    return problem


def _read_name(words: list[str]) -> Expression:
    name = words[0].lower()
    if name == "@every":
        return _read_every(words[1:])
    if name not in NAMED:
        known = [*NAMED, "@every"]
        hint = did_you_mean(name, known) or f"; there are {', '.join(NAMED)} and @every"
        raise InvalidSchedule("cron", f"there is no {words[0]}{hint}")
    if len(words) > 1:
        raise InvalidSchedule("cron", f"nothing may follow {words[0]}")
    return read(NAMED[name])


def _read_every(words: list[str]) -> timedelta:
    found = _DURATION.fullmatch(words[0].lower()) if len(words) == 1 else None
    if found is None or not any(found.groups()):
        raise InvalidSchedule("cron", "@every needs a duration in d, h, m and s, such as 1h30m")
    pairs = zip(found.groups(), _UNIT_SECONDS, strict=True)
    seconds = sum(int(count) * unit for count, unit in pairs if count)
    # Compared as numbers: a timedelta cannot hold what 200 digits can say.
    if not SHORTEST_INTERVAL.total_seconds() <= seconds <= LONGEST_INTERVAL.total_seconds():
        raise InvalidSchedule("cron", f"@every {words[0]} is not from 1s to 366d")
    return timedelta(seconds=seconds)
