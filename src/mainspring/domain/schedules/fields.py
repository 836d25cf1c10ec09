"""What kind of value each field of a schedule takes, for interfaces that any program can call."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from zoneinfo import ZoneInfo

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.conditions import GaugeBounds
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import ScheduleSpec, ensure_fields, word_list
from mainspring.domain.schedules.slots import CatchUp, Overlap
from mainspring.domain.types import Delivery

NULLABLE = frozenset(part.name for part in fields(ScheduleSpec) if part.default is None) - {
    "condition_role"  # Whoever writes the schedule, unless another is given.
}

_AWARE = "a datetime with a time zone, such as datetime(2026, 1, 1, tzinfo=UTC)"
_TEXT = (str, "a string")
_DURATION = (timedelta, "a timedelta, such as timedelta(minutes=5)")
_INSTANT = (datetime, _AWARE)
_WHOLE = (int, "a whole number")
_NUMBER = ((int, float), "a number")
_OBJECT = (Mapping, "a dict")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "enabled": (bool, "True or False"),
    "every": _DURATION,
    "at": _INSTANT,
    "calendar": _OBJECT,
    "starts_at": _INSTANT,
    "ends_at": _INSTANT,
    "jitter": _DURATION,
    "payload": _OBJECT,
    "priority": _WHOLE,
    "max_attempts": _WHOLE,
    "misfire_grace": _DURATION,
    "catch_up_limit": _WHOLE,
    "catch_up_max_age": _DURATION,
    "max_running": _WHOLE,
    "run_timeout": _DURATION,
    "gauge_lower": _NUMBER,
    "gauge_upper": _NUMBER,
    "condition_timeout": _DURATION,
    "max_retries": _WHOLE,
    "paused_until": _INSTANT,
}


class ScheduleFields(TypedDict, total=False):
    """What can be said of a schedule besides its name and its job; see `ScheduleSpec`."""

    description: str
    enabled: bool
    cron: str | None
    every: timedelta | None
    at: datetime | None
    zone: str
    dst_gap: DstGap | Literal["run_after", "skip"]
    dst_fold: DstFold | Literal["once", "both"]
    calendar: Mapping[str, Any] | None
    starts_at: datetime | None
    ends_at: datetime | None
    jitter: timedelta
    payload: Mapping[str, Any]
    queue: str | None
    priority: int | None
    max_attempts: int | None
    delivery: Delivery | Literal["at_least_once", "at_most_once"] | None
    misfire_grace: timedelta
    catch_up: CatchUp | Literal["none", "latest", "all"]
    catch_up_limit: int
    catch_up_max_age: timedelta | None
    overlap: Overlap | Literal["skip", "queue", "replace"]
    max_running: int
    run_timeout: timedelta | None
    launcher: type[Any] | str | None
    condition_sql: str | None
    gauge_sql: str | None
    gauge_lower: float | None
    gauge_upper: float | None
    gauge_bounds: GaugeBounds | Literal["inclusive", "exclusive"] | None
    condition_role: str | None
    condition_timeout: timedelta
    max_retries: int
    paused_until: datetime | None


def ensure_kinds(given: Mapping[str, Any]) -> None:
    """Raise InvalidSchedule for a field that there is not, or a value of the wrong kind."""
    ensure_fields(given)
    for name, value in given.items():
        if value is None:
            if name not in NULLABLE:
                raise InvalidSchedule(name, "must have a value")
        else:
            _ensure_kind(name, value)


def _ensure_kind(name: str, value: object) -> None:
    if name == "zone" and isinstance(value, ZoneInfo):
        raise InvalidSchedule(name, "must be a name such as 'Europe/Berlin'; pass zone.key")
    words = word_list(name)
    kind, said = _KINDS.get(name, _TEXT) if words is None else (str, words)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidSchedule(name, f"must be {said}, not {type(value).__name__}")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise InvalidSchedule(name, f"must be {_AWARE}; this one has none")
    if isinstance(value, str):
        _ensure_text(name, value)


def _ensure_text(name: str, value: str) -> None:
    if "\0" in value:
        raise InvalidSchedule(name, "contains a NUL byte, which PostgreSQL cannot store")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidSchedule(
            name, "contains a lone surrogate, which is not valid Unicode"
        ) from None
