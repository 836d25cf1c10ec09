"""The pure side of launchers: what a check says, and the memory of a gauge.

A check has three outcomes and no others: run, skip, fail. A skip is healthy however often it
comes; only a failure counts towards disabling the schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any

from mainspring.domain.errors import InvalidSchedule


@dataclass(frozen=True, slots=True)
class Run:
    """The condition is met; the payload and the definition are the schedule's own if None."""

    payload: Mapping[str, Any] | None = None
    definition: str | None = None
    gauge_is_high: bool | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """The condition is not met, which is fine."""

    reason: str = "the condition is not met"
    gauge_is_high: bool | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The check itself went wrong."""

    reason: str


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


def read_gauge(answer: object, *, lower: float, upper: float, was_high: bool) -> Run | Skip:
    """Hysteresis: high from `upper` on, until it falls to `lower`; between them, as it was."""
    value = _number(answer)
    if value is None:
        raise InvalidSchedule("gauge_sql", f"returned {_said(answer)}; it must return one number")
    if value >= upper:
        return Run(gauge_is_high=True)
    if value <= lower:
        return Skip(f"{value:g} is not above {lower:g}", gauge_is_high=False)
    if was_high:
        return Run(gauge_is_high=True)
    return Skip(f"{value:g} has not reached {upper:g}", gauge_is_high=False)


def _number(answer: object) -> float | None:
    """The answer of a database as a number; None if it is none, as NaN is not."""
    if not isinstance(answer, int | float | Decimal):
        return None
    number = float(answer)
    return None if isnan(number) else number


def _said(answer: object) -> str:
    return "nothing" if answer is None else f"{type(answer).__name__} {str(answer)[:50]!r}"
