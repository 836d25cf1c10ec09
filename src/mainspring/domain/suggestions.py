"""Suggestions for names that were mistyped."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if none is close."""
    near = get_close_matches(name, list(known), n=1)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence; empty if no known name is close."""
    near = closest(name, known)
    return "" if near is None else f"; did you mean {near}?"
