"""Values that a list is filtered by: one, several or none. Several are alternatives."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.suggestions import did_you_mean

T = TypeVar("T")
Word = TypeVar("Word", bound=StrEnum)

Several: TypeAlias = T | Collection[T] | None

MOST_VALUES = 50
_LARGEST = 2**63 - 1


def texts(name: str, given: Several[str]) -> tuple[str, ...]:
    """The texts that a filter names, each once; empty if it names none."""
    values = _values(name, given)
    for value in values:
        ensure_text(name, value)
    return values


def words(name: str, given: Several[str], kind: type[Word]) -> tuple[Word, ...]:
    """The same of words that are known."""
    return tuple(_word(name, value, kind) for value in _values(name, given))


def numbers(name: str, given: Several[int | str]) -> tuple[int, ...]:
    """The same of whole numbers, which may be written as text."""
    values = (given,) if isinstance(given, int) else given
    return tuple(_number(name, value) for value in _values(name, values))


def _number(name: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise InvalidOption(name, f"must be a whole number, not {value!r}")
    if int(text) > _LARGEST:
        raise InvalidOption(name, f"must be at most {_LARGEST}, not {text}")
    return int(text)


def _values(name: str, given: Several[Any]) -> tuple[Any, ...]:
    if given is None:
        return ()
    if not isinstance(given, str) and not isinstance(given, Iterable):
        raise InvalidOption(name, f"must be a string or a list, not {type(given).__name__}")
    values = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    if len(values) > MOST_VALUES:
        raise InvalidOption(name, f"can have at most {MOST_VALUES} values, not {len(values)}")
    return values


def _word(name: str, value: str, kind: type[Word]) -> Word:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        hint = did_you_mean(str(value), kind)
        raise InvalidOption(name, f"must be one of {known}, not {value!r}{hint}") from None
