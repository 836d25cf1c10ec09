"""The pure side of launchers: what a check says, and the memory of a gauge.

A check has three outcomes and no others: run, skip, fail. A skip is healthy however often it
comes; only a failure counts towards disabling the schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from math import isnan
from typing import Any

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.types import JobId


class GaugeBounds(StrEnum):
    """Whether a value that equals a threshold has reached it."""

    INCLUSIVE = "inclusive"
    EXCLUSIVE = "exclusive"


class GaugeSide(StrEnum):
    """Where a gauge is: high from the time it reached the upper threshold until it is down at the
    lower one."""

    HIGH = "high"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge as it stands; it has no value before its first reading."""

    value: float | None
    side: GaugeSide
    lower: float
    upper: float
    bounds: GaugeBounds
    read_at: datetime | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a gauge, and its side afterwards."""

    value: float
    is_high: bool


@dataclass(frozen=True, slots=True)
class Run:
    """The condition is met; the payload and the definition are the schedule's own if None, and
    the job gets an id that was reserved for it, if any."""

    payload: Mapping[str, Any] | None = None
    definition: str | None = None
    gauge: "Reading | None" = None
    job_id: JobId | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """The condition is not met, which is fine."""

    reason: str = "the condition is not met"
    gauge: "Reading | None" = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The check itself went wrong; `traceback` says where, if it was code of the user's. After a
    permanent failure the slot is not tried again."""

    reason: str
    traceback: str = ""
    is_permanent: bool = False


Verdict = Run | Skip | Failed


def is_met(answer: object) -> bool:
    """Whether what a condition's first column says means yes; a missing row is None."""
    if answer is None:
        return False
    number = _number(answer)
    if number is None:
        raise InvalidSchedule(
            "condition_sql",
            f"returned {_said(answer)}; it must return a boolean or a number in its first column",
        )
    return number != 0


def read_gauge(
    answer: object,
    *,
    lower: float,
    upper: float,
    was_high: bool,
    bounds: GaugeBounds = GaugeBounds.INCLUSIVE,
) -> Run | Skip:
    """Hysteresis: high from `upper` on, until it falls to `lower`; between them, as it was. With
    exclusive bounds it must be above the one or below the other."""
    value = _number(answer)
    if value is None:
        raise InvalidSchedule("gauge_sql", f"returned {_said(answer)}; it must return one number")
    is_inclusive = bounds is GaugeBounds.INCLUSIVE
    if value > upper or (is_inclusive and value == upper):
        return Run(gauge=Reading(value, is_high=True))
    if value < lower or (is_inclusive and value == lower):
        below = f"is not above {lower:g}" if is_inclusive else f"is below {lower:g}"
        return Skip(f"{value:g} {below}", Reading(value, is_high=False))
    if was_high:
        return Run(gauge=Reading(value, is_high=True))
    above = f"has not reached {upper:g}" if is_inclusive else f"is not above {upper:g}"
    return Skip(f"{value:g} {above}", Reading(value, is_high=False))


def _number(answer: object) -> float | None:
    """The answer of a database as a number; None if it is none, as NaN is not."""
    if not isinstance(answer, int | float | Decimal):
        return None
    number = float(answer)
    return None if isnan(number) else number


def _said(answer: object) -> str:
    return "nothing" if answer is None else f"{type(answer).__name__} {str(answer)[:50]!r}"
