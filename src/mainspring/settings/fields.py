"""Fields of the settings: how a value is read as a flag, a variable or a file writes it.

Written out instead of being a model of pydantic, because every command and every worker pays for
the import of what reads its settings, and this is a seventh of it.
"""

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_YES = frozenset({"1", "on", "t", "true", "y", "yes"})
_NO = frozenset({"0", "off", "f", "false", "n", "no"})
_WHOLE = re.compile(r"\s*([+-]?\d(?:_?\d)*)(?:\.0*)?\s*")


class OtherKindError(Exception):
    """The value is of another kind, or out of range."""


class SecretText:
    """A text that is not shown by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"SecretText({'**********' if self._text else ''!r})"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One setting: its default, what it may be, and what it means.

    `read` raises OtherKindError, or ValueError with what is wrong with the value.
    """

    kind: type
    default: Any
    description: str
    read: Callable[[Any], Any]
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    separator: str | None = None

    def value(self, given: Any) -> Any:
        """What was given as what the setting is."""
        if isinstance(given, list | tuple) and self.separator is not None:
            given = _joined(given, self.separator)
        if isinstance(given, bool) and self.kind is not bool:
            raise OtherKindError
        if isinstance(given, str) and "\0" in given:
            raise ValueError("it contains a NUL character")
        return self.read(given)


def whole(default: int, *, least: int, most: int, description: str) -> Any:
    def read(given: Any) -> int:
        number = _whole(given)
        if not least <= number <= most:
            raise OtherKindError
        return number

    return Field(int, default, description, read, least, most)


def number(default: float, *, least: float, most: float, description: str) -> Any:
    def read(given: Any) -> float:
        found = _number(given)
        if not least <= found <= most:
            raise OtherKindError
        return found

    return Field(float, float(default), description, read, least, most)


def switch(*, default: bool, description: str) -> Any:
    return Field(bool, default, description, _switch)


def choice(default: str, *, among: tuple[str, ...], description: str) -> Any:
    def read(given: Any) -> str:
        if given not in among:
            raise OtherKindError
        return str(given)

    return Field(str, default, description, read, choices=among)


def text(
    default: str,
    *,
    description: str,
    separator: str | None = None,
    longest: int | None = None,
    check: Callable[[str], object] = str,
) -> Any:
    """With `longest` it is not empty. `check` raises ValueError with what is wrong."""

    def read(given: Any) -> str:
        found = _text(given)
        if longest is not None and not 1 <= len(found) <= longest:
            raise OtherKindError
        check(found)
        return found

    return Field(str, default, description, read, separator=separator)


def optional_text(*, description: str, check: Callable[[str], object] = str) -> Any:
    """An empty one is none."""

    def read(given: Any) -> str | None:
        found = None if given is None else _text(given)
        if found:
            check(found)
        return found or None

    return Field(str, None, description, read)


def secret(
    *, description: str, separator: str | None = None, check: Callable[[str], object] = str
) -> Any:
    def read(given: Any) -> SecretText:
        found = given.reveal() if isinstance(given, SecretText) else _text(given)
        check(found)
        return SecretText(found)

    return Field(SecretText, SecretText(""), description, read, separator=separator)


def path(*, description: str) -> Any:
    def read(given: Any) -> Path | None:
        if given is None:
            return None
        if not isinstance(given, str | os.PathLike):
            raise OtherKindError
        return Path(given)

    return Field(Path, None, description, read)


def fields_of(kind: type) -> Mapping[str, Field]:
    """In the order of the class."""
    return {name: field for name, field in vars(kind).items() if isinstance(field, Field)}


def _joined(parts: list[Any] | tuple[Any, ...], separator: str) -> str:
    if not all(isinstance(part, str) and separator not in part for part in parts):
        raise OtherKindError
    return separator.join(parts)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise OtherKindError
    return given


def _whole(given: Any) -> int:
    if isinstance(given, str):
        found = _WHOLE.fullmatch(given)
        # Python refuses to read thousands of digits, and no setting has so many.
        if found is None or len(given) > 100:
            raise OtherKindError
        return int(found[1])
    if isinstance(given, float) and given.is_integer():
        return int(given)
    if not isinstance(given, int):
        raise OtherKindError
    return given


def _number(given: Any) -> float:
    if not isinstance(given, str | int | float):
        raise OtherKindError
    try:
        found = float(given)
    except (ValueError, OverflowError):
        raise OtherKindError from None
    if not math.isfinite(found):
        raise OtherKindError
    return found


def _switch(given: Any) -> bool:
    if isinstance(given, str):
        given = given.lower()
        if given not in _YES | _NO:
            raise OtherKindError
        return given in _YES
    if given not in {0, 1}:
        raise OtherKindError
    return bool(given)
