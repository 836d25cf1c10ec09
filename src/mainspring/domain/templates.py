"""Payload templates: values filled in where a string holds `{{path|filter}}`.

    {"day": "{{slot_at|date}}", "size": "{{event.size|default(0)}}", "to": "Dear {{name}}"}

A string that is one expression and nothing else becomes the value itself; inside a longer
string the value becomes text. A path is dotted names over dicts and lists and nothing else:
no attributes, no calls, no loops, so a template can read only what it was given. Filters
are applied from left to right; `default` answers for a path that leads nowhere, not for a
null. An instant becomes ISO text in UTC, ending in Z.

The parser goes through a string once, from left to right, and never back. What a template may cost
is counted: its values and expressions, and the bytes of what it reads and makes.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn

from mainspring.domain.errors import InvalidTemplate
from mainspring.domain.suggestions import closest
from mainspring.domain.template_sources import (
    MISSING,
    Budget,
    Source,
    ensure_depth,
    plain,
    size_of,
)

_OPENING, _CLOSING = "{{", "}}"
_DEFAULT = "default"

MOST_EXPRESSIONS = 200
MOST_VALUES = 10_000
_LARGEST_RESULT = 64 * 1024 * 1024
_DEEPEST_TEMPLATE = 20
_LONGEST_TEMPLATE = 10_000
# What it takes to look at a value of a template, as so many bytes.
_COST_OF_A_VALUE = 32
_LONGEST_SHOWN = 80

_PATH = re.compile(r"[^\W\d][\w-]*(?:\.[\w-]+)*")
_NAME = re.compile(r"\w+")
_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MAY_HOLD = (str, dict, list)


@dataclass(frozen=True, slots=True)
class _Filter:
    name: str
    argument: Any = None


@dataclass(frozen=True, slots=True)
class _Expression:
    path: str
    filters: tuple[_Filter, ...]

    @property
    def first_name(self) -> str:
        return self.path.partition(".")[0]


def has_template(value: object) -> bool:
    """Whether any string in the value would be rendered; keys are not templates."""
    waiting: list[Iterable[object]] = [(value,)]
    while waiting:
        group = waiting.pop()
        # Very many numbers are passed over by their types.
        if not any(issubclass(kind, _MAY_HOLD) for kind in set(map(type, group))):
            continue
        for node in group:
            if isinstance(node, str):
                if _OPENING in node:
                    return True
            elif isinstance(node, dict | list):
                waiting.append(_inside(node))
    return False


def check(value: object, known: Collection[str]) -> None:
    """Refuse what `render` would refuse whatever the values of the known names are."""
    if not has_template(value):
        return
    count = _Count()
    for node, depth in _nodes(value):
        ensure_depth(depth, _DEEPEST_TEMPLATE)
        count.add_value()
        for part in _parse(str(node)) if _is_template(node) else ():
            if not isinstance(part, _Expression):
                continue
            count.add_expression()
            if part.first_name not in known:
                raise _unknown("name", part.first_name, known)


def render(
    value: object,
    names: Mapping[str, Any] | Source,
    *,
    refuses_unknown: bool = True,
    largest: int = _LARGEST_RESULT,
) -> Any:
    """A new value with every template filled in; the value itself where it holds none.

    A path that leads nowhere is refused, or else null. So is a result of more than `largest`
    characters."""
    if not has_template(value):
        return value
    source = names if isinstance(names, Source) else Source(names)
    budget = Budget(
        largest,
        f"renders to more than {largest:,} characters; pass a reference to large data instead",
    )
    return _Rendering(source, budget, refuses_unknown=refuses_unknown).fill(value)


def _is_template(node: object) -> bool:
    return isinstance(node, str) and _OPENING in node


def _nodes(value: object) -> Iterator[tuple[object, int]]:
    """Every value inside, in order, each with the number of dicts and lists around it. Nothing is
    read that is not asked for."""
    around: list[Iterator[object]] = [iter((value,))]
    while around:
        for node in around[-1]:
            yield node, len(around) - 1
            if isinstance(node, dict | list):
                around.append(iter(_inside(node)))
                break
        else:
            around.pop()


def _inside(node: dict[Any, object] | list[object]) -> Iterable[object]:
    return node.values() if isinstance(node, dict) else node


@lru_cache(maxsize=1024)
def _parse(text: str) -> tuple[str | _Expression, ...]:
    """The expressions and the literal texts around them, in order."""
    if len(text) > _LONGEST_TEMPLATE:
        raise InvalidTemplate(
            f"a template may have at most {_LONGEST_TEMPLATE:,} characters, not {len(text):,}"
        )
    parts: list[str | _Expression] = []
    position = 0
    while (opening := text.find(_OPENING, position)) >= 0:
        reader = _Reader(text, opening + len(_OPENING))
        parts += [text[position:opening], reader.expression()]
        position = reader.position
    parts.append(text[position:])
    return tuple(part for part in parts if part != "")


@dataclass(slots=True)
class _Reader:
    """Reads one expression, and stands behind it afterwards."""

    text: str
    position: int

    def expression(self) -> _Expression:
        path = self._take(_PATH) or self._fail("a name such as event.size")
        filters = []
        while self._skip("|"):
            filters.append(self._filter())
        if not self._skip(_CLOSING):
            self._fail(f"'|' or '{_CLOSING}'")
        return _Expression(path, tuple(filters))

    def _filter(self) -> _Filter:
        name = self._take(_NAME) or self._fail("the name of a filter")
        if name == _DEFAULT:
            return _Filter(name, self._argument())
        if name not in _FILTERS:
            raise _unknown("filter", name, [_DEFAULT, *_FILTERS])
        return _Filter(name)

    def _argument(self) -> Any:
        if not self._skip("("):
            self._fail("a value, as in default('x')")
        value = self._literal()
        if not self._skip(")"):
            self._fail("')'")
        return value

    def _literal(self) -> Any:
        self._take(_SPACE)
        if quoted := _QUOTED.match(self.text, self.position):
            self.position = quoted.end()
            return _ESCAPED.sub(r"\1", quoted[1])
        try:
            value, self.position = _JSON.raw_decode(self.text, self.position)
        except (ValueError, RecursionError):
            self._fail("a JSON value or a string in single quotes")
        for _, depth in _nodes(value):
            ensure_depth(depth, _DEEPEST_TEMPLATE)
        return value

    def _skip(self, mark: str) -> bool:
        """Go past space, and past the mark if it comes next."""
        self._take(_SPACE)
        is_next = self.text.startswith(mark, self.position)
        self.position += len(mark) * is_next
        return is_next

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Go past space and what matches; empty when nothing does."""
        start = _behind(_SPACE, self.text, self.position)
        self.position = _behind(pattern, self.text, start)
        return self.text[start : self.position]

    def _fail(self, expected: str) -> NoReturn:
        found = self.text[self.position :][:_LONGEST_SHOWN]
        raise InvalidTemplate(
            f"expected {expected} at character {self.position + 1} of a template, "
            f"not {repr(found) if found else 'its end'}"
        )


def _behind(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _finite(text: str) -> float:
    """The float, since 1e999 would become an infinity that JSON has no word for."""
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


_JSON = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _to_number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    # Python itself would read 1_000 and the digits of every script.
    if not isinstance(value, str) or "_" in value or not value.isascii():
        raise ValueError
    try:
        return int(value)
    except ValueError:
        return _finite(value)


def _to_date(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - the value is wrong, not the program
    return datetime.fromisoformat(value).date().isoformat()


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_FILTERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "date": _to_date,
        "lower": lambda value: _to_text(value).lower(),
        "number": _to_number,
        "string": _to_text,
        "upper": lambda value: _to_text(value).upper(),
    }
)


@dataclass(slots=True)
class _Count:
    """How much there is in a template."""

    values: int = 0
    expressions: int = 0

    def add_value(self) -> None:
        self.values += 1
        if self.values > MOST_VALUES:
            raise InvalidTemplate(f"a payload template may have at most {MOST_VALUES:,} values")

    def add_expression(self) -> None:
        self.expressions += 1
        if self.expressions > MOST_EXPRESSIONS:
            raise InvalidTemplate(
                f"a payload template may have at most {MOST_EXPRESSIONS} expressions"
            )


@dataclass(slots=True)
class _Rendering:
    """One rendering; `budget` keeps a short template from growing a huge result."""

    source: Source
    budget: Budget
    refuses_unknown: bool = True
    count: _Count = field(default_factory=_Count)

    def fill(self, value: object, depth: int = 0) -> Any:
        ensure_depth(depth, _DEEPEST_TEMPLATE)
        self.count.add_value()
        self.source.spend(_COST_OF_A_VALUE)
        if isinstance(value, dict):
            return {key: self.fill(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each, depth + 1) for each in value]
        return self._fill_text(str(value)) if _is_template(value) else value

    def _fill_text(self, text: str) -> Any:
        match _parse(text):
            case (_Expression() as only,):
                value, size = self._value(only)
                self._spend(size)
                return value
            case parts:
                return "".join(self._part(part) for part in parts)

    def _part(self, part: str | _Expression) -> str:
        text = part if isinstance(part, str) else _to_text(self._value(part)[0])
        self._spend(len(text))
        return text

    def _value(self, expression: _Expression) -> tuple[Any, int]:
        """With its size."""
        self.count.add_expression()
        value, size = self.source.find(expression.path)
        for each in expression.filters:
            # A filter reads all of it, and may be one of a thousand.
            self.source.spend(size)
            if each.name != _DEFAULT:
                value = _filtered(value, each.name, expression.path)
            elif value is MISSING:
                value, size = plain(each.argument), size_of(each.argument)
        if value is MISSING and not self.refuses_unknown:
            return None, 1
        if value is MISSING:
            raise InvalidTemplate(
                f"there is no {expression.path[:_LONGEST_SHOWN]!r}; add |default(...) if it may "
                "be missing"
            )
        return value, size

    def _spend(self, size: int) -> None:
        self.budget.spend(size)
        self.source.spend(size)


def _filtered(value: Any, name: str, path: str) -> Any:
    if value is MISSING:
        return value
    try:
        return _FILTERS[name](value)
    except ValueError as error:
        raise InvalidTemplate(
            f"the value of {path[:_LONGEST_SHOWN]!r} cannot be read as a {name}"
        ) from error


def _unknown(kind: str, word: str, known: Collection[str]) -> InvalidTemplate:
    shown = word[:_LONGEST_SHOWN]
    near = closest(shown, known)
    hint = f"did you mean {near!r}? " if near else ""
    listed = ", ".join(sorted(known))
    return InvalidTemplate(f"unknown {kind} {shown!r}; {hint}choose from {listed}")
