"""Pages of a table that is looked at from one end to the other, in the order of its key."""

from typing import Any, NamedTuple

Keys = tuple[int, ...]


class Page(NamedTuple):
    """How many rows were looked at and how many of them removed, and the key of the last."""

    rows: int
    removed: int
    last: Keys | None


def page_of(row: tuple[Any, ...] | None) -> Page:
    """The two numbers, then the key; no row is an empty page."""
    if row is None:
        return Page(0, 0, None)
    rows, removed, *last = row
    return Page(rows, removed, tuple(last))
