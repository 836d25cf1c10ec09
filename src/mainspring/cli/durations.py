"""Durations as options take them: 90s, 5m, 1h30m, 2d, or a number of seconds."""

import re
from datetime import timedelta

from mainspring.domain.errors import InvalidOption, InvalidSchedule
from mainspring.domain.schedules import cron_expressions

_LONGEST = timedelta(days=366)
_DAYS = re.compile(r"[0-9]{1,6}d")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def read_duration(
    option: str, text: str, _: object = None, *, longest: timedelta = _LONGEST
) -> timedelta:
    """From 0 to 366 days, or to the longest; a number alone is in seconds."""
    duration = _read(text)
    if duration is None or duration > longest:
        raise InvalidOption(
            option,
            f"must be a duration up to {longest.days}d such as 90s, 5m, 1h30m or 2d, not {text!r}",
        )
    return duration


def read_seconds(option: str, text: str, *, least: float = 0, most: float | None = None) -> float:
    """A duration in seconds, within the bounds."""
    seconds = read_duration(option, text).total_seconds()
    if seconds < least or (most is not None and seconds > most):
        raise InvalidOption(option, f"must be from {least:g}s to {most:g}s, not {text!r}")
    return seconds


def _read(text: str) -> timedelta | None:
    if text == "0s":
        return timedelta(0)
    if _DAYS.fullmatch(text):
        return timedelta(days=int(text[:-1]))
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=float(text))
    try:
        read = cron_expressions.read(f"@every {text}")
    except InvalidSchedule:
        return None
    return read if isinstance(read, timedelta) else None
