"""Limits: how many jobs may run at once, and how often one may start, over all workers.

A rate is a bucket of tokens: a start takes one, and one flows in every `period / count`. The
bucket holds `burst` of them. With the burst of 1 that is the default, starts are spaced evenly and
no period ever sees more than `count` of them; with more, as many can start in a row after a rest.
"""

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import NamedTuple

from mainspring.domain.errors import InvalidOption

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,199}")
_RATE = re.compile(
    r"(?P<count>[0-9]{1,9})\s*/\s*(?P<size>[0-9]{1,8}(?:\.[0-9]{1,6})?)?\s*(?P<unit>[a-z]+)"
)
_UNITS = MappingProxyType(
    {
        "second": timedelta(seconds=1),
        "minute": timedelta(minutes=1),
        "hour": timedelta(hours=1),
        "day": timedelta(days=1),
    }
)
_SHORT = MappingProxyType(
    {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day"}
)
_LONGEST_PATH = 200
_LARGEST = 1_000_000_000


class LimitKey(NamedTuple):
    """What a job is counted by: its limit, the key in it, and its tenant."""

    limit: str
    key: str
    tenant_id: str


def parse_limit_key(text: str) -> LimitKey | None:
    """A limit key as a notification names it: limit, key and tenant, as JSON.

    None if it is anything else, for everyone may send notifications.
    """
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_valid = (
        isinstance(parts, list)
        and len(parts) == len(LimitKey._fields)
        and all(isinstance(part, str) and _is_storable(part) for part in parts)
    )
    return LimitKey(*parts) if is_valid else None


def _is_storable(text: str) -> bool:
    """Whether PostgreSQL can be asked for it: Unicode text without a NUL byte."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` starts in every `period`."""

    count: int
    period: timedelta

    @classmethod
    def of(cls, count: int, seconds: float) -> "Rate":
        return cls(count, timedelta(seconds=seconds))

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Reads "100/minute", "5/s" or "10/30s"."""
        found = _RATE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        unit = _unit(found["unit"]) if found else None
        if found and unit and int(found["count"]):
            period = float(found["size"] or 1) * _UNITS[unit]
            if period > timedelta(0):
                return cls(int(found["count"]), period)
        raise InvalidOption("rate", f"must be written like 100/minute or 10/30s, not {text!r}")

    def __str__(self) -> str:
        for unit, length in _UNITS.items():
            if self.period == length:
                return f"{self.count}/{unit}"
        seconds = f"{self.period.total_seconds():.6f}".rstrip("0").rstrip(".")
        return f"{self.count}/{seconds}s"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a limit allows; None means unlimited."""

    name: str
    concurrency: int | None = None
    key_concurrency: int | None = None
    rate: Rate | None = None
    burst: int = 1

    def __post_init__(self) -> None:
        ensure_limit_name(self.name)
        _ensure_count("concurrency", self.concurrency, least=0)
        _ensure_count("key_concurrency", self.key_concurrency, least=0)
        _ensure_count("burst", self.burst, least=1)


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit with the number of its running and waiting jobs."""

    limit: Limit
    running: int
    waiting: int

    @property
    def name(self) -> str:
        return self.limit.name


def ensure_limit_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption(
            "limit",
            "must start with a letter or _ and contain only letters, digits and _ . : - (at most "
            f"200 characters), not {name!r}",
        )


def ensure_limit_by(path: str | None) -> None:
    """Refuse what is no dotted path into a payload."""
    if path is None:
        return
    if not isinstance(path, str) or not all(path.split(".")) or len(path) > _LONGEST_PATH:
        raise InvalidOption(
            "limit_by", f"must be a field of the payload such as user_id or to.host, not {path!r}"
        )


def _unit(word: str) -> str | None:
    word = _SHORT.get(word) or word.removesuffix("s")
    return word if word in _UNITS else None


def _ensure_count(option: str, count: int | None, *, least: int) -> None:
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool) or not least <= count <= _LARGEST:
        raise InvalidOption(option, f"must be a whole number, {least} or more, not {count!r}")
