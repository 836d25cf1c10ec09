"""What payload templates are filled in from, and what that may cost.

A source looks up paths. The usual one copies each value that it finds, with instants as text. One
of JSON hands out its values as they are, looks each path up once, and has a budget for all that is
rendered from it: an event is one source, and may have hundreds of triggers.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mainspring.domain.errors import InvalidTemplate

MISSING = object()

_DEEPEST_VALUE = 200
_LONGEST_INDEX = 9


class Budget:
    """So many characters may be read and made; whoever goes over is refused with `problem`."""

    __slots__ = ("_left", "_problem")

    def __init__(self, size: int, problem: str) -> None:
        self._left, self._problem = size, problem

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InvalidTemplate(self._problem)


class Source:
    """Names and their values."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def spend(self, size: int) -> None:
        """Someone reads or makes so many characters."""

    def find(self, path: str) -> tuple[Any, int]:
        """A new value and its size, or MISSING."""
        value = plain(look_up(self._names, path))
        return value, size_of(value)


class JsonSource(Source):
    """JSON, and one budget for all that is rendered from it. Its values are shared by the results,
    so they are left alone."""

    def __init__(self, names: Mapping[str, Any], budget: Budget) -> None:
        super().__init__(names)
        self._budget = budget
        self._found: dict[str, tuple[Any, int]] = {}

    def spend(self, size: int) -> None:
        self._budget.spend(size)

    def find(self, path: str) -> tuple[Any, int]:
        if path not in self._found:
            value = look_up(self._names, path)
            self._found[path] = value, size_of(value)
            self.spend(self._found[path][1])
        return self._found[path]


def look_up(value: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step, MISSING)
        elif isinstance(value, list):
            value = _element(value, step)
        else:
            return MISSING
    return value


def _element(values: list[Any], step: str) -> Any:
    # The length first: Python refuses to make an integer of thousands of digits.
    if len(step) > _LONGEST_INDEX or not (step.isascii() and step.isdigit()):
        return MISSING
    index = int(step)
    return values[index] if index < len(values) else MISSING


def plain(value: Any, depth: int = 0) -> Any:
    """A copy that shares nothing a caller could change, with instants as text."""
    ensure_depth(depth, _DEEPEST_VALUE)
    if isinstance(value, Mapping):
        return {key: plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each, depth + 1) for each in value]
    return instant_text(value) if isinstance(value, datetime) else value


def size_of(value: Any) -> int:
    """The characters of its JSON."""
    if value is MISSING:
        return 1
    if isinstance(value, str):
        return len(value) + 2
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def instant_text(instant: datetime) -> str:
    """ISO text in UTC; an instant without a zone is taken to be in UTC already."""
    in_utc = instant.astimezone(UTC) if instant.tzinfo else instant
    return in_utc.replace(tzinfo=None).isoformat() + "Z"


def ensure_depth(depth: int, deepest: int) -> None:
    if depth > deepest:
        raise InvalidTemplate(f"a template or its value is nested more than {deepest} deep")
