"""Pages of a table that is looked at from one end to the other, in the order of its key."""

from collections.abc import Mapping
from typing import NamedTuple

from mainspring.db.sessions import Session

Keys = tuple[int, ...]


class Page(NamedTuple):
    """How many rows were looked at and how many of them removed, and the key of the last."""

    rows: int
    removed: int
    last: Keys | None


async def read_page(session: Session, sql: str, params: Mapping[str, object]) -> Page:
    """Run a statement that gives one row: the two numbers, then the key."""
    cursor = await session.execute(sql, params)
    row = await cursor.fetchone()
    if row is None:
        return Page(0, 0, None)
    rows, removed, *last = row
    return Page(rows, removed, tuple(last))
