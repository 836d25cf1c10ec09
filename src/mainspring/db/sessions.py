"""Sessions: what can run statements.

    psycopg's AsyncConnection   as it is: in whatever transaction it has open
    Database                    each statement in a transaction of its own, as the owner
    RequestSession              the same out of one tenant's share; see request_sessions.py
    TenantSession               the same as one caller; see tenant_sessions.py
    TransactionSession          all in one transaction of one caller
    CallerSession               on the connection of whoever calls us; see caller_sessions.py

A store function takes a `Session`. A use case that also needs the settings, or one transaction for
several statements, takes a `ServiceSession`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from psycopg import AsyncConnection, AsyncCursor, Cursor
from psycopg.pq.abc import PGresult

from mainspring.db.calls import Call, Params, Rows
from mainspring.settings import Settings


class Column(Protocol):
    @property
    def name(self) -> str: ...


class Result(Protocol):
    """What a statement gave. A cursor of psycopg is one."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Sequence[Column] | None: ...

    async def fetchall(self) -> Rows: ...

    async def fetchone(self) -> tuple[Any, ...] | None: ...


class Session(Protocol):
    """What can run statements. Rows are tuples."""

    async def execute(self, query: str, params: Params | None = None, /) -> Result: ...


class ServiceSession(Session, Protocol):
    """A session as use cases get it."""

    @property
    def settings(self) -> Settings: ...

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """One connection, with the rights of the session, inside a transaction."""
        ...


@dataclass(frozen=True, slots=True)
class _Name:
    name: str


class Fetched:
    """The result of a statement whose connection is no longer ours. Without rows it is empty."""

    __slots__ = ("_at", "_pgresult", "_rows", "rowcount")

    def __init__(self, rows: Rows, rowcount: int = -1, pgresult: PGresult | None = None) -> None:
        self.rowcount = rowcount
        self._rows, self._at, self._pgresult = rows, 0, pgresult

    @property
    def names(self) -> list[str]:
        """Those of the columns; none where the driver does not say."""
        result = self._pgresult
        if result is None:
            return []
        return [(result.fname(number) or b"").decode() for number in range(result.nfields)]

    @property
    def description(self) -> list[_Name] | None:
        return [_Name(name) for name in self.names] or None

    async def fetchall(self) -> Rows:
        rows, self._at = self._rows[self._at :], len(self._rows)
        return rows

    async def fetchone(self) -> tuple[Any, ...] | None:
        if self._at >= len(self._rows):
            return None
        self._at += 1
        return self._rows[self._at - 1]


async def fetched(cursor: AsyncCursor[Any]) -> Fetched:
    """All that a cursor has to give."""
    rows = await cursor.fetchall() if has_rows(cursor) else []
    return Fetched(rows, cursor.rowcount, cursor.pgresult)


def has_rows(cursor: Cursor[Any] | AsyncCursor[Any]) -> bool:
    """Whether the statement gives rows, if none now; `description` would describe every column."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


async def run_call(session: Session, call: Call) -> Rows:
    return await (await session.execute(call.sql, call.params)).fetchall()


async def fetch_all(session: Session, sql: str, params: Params | None = None) -> Rows:
    return await (await session.execute(sql, params)).fetchall()


async def fetch_one(
    session: Session, sql: str, params: Params | None = None
) -> tuple[Any, ...] | None:
    """The first row; None if there is none."""
    return await (await session.execute(sql, params)).fetchone()


async def fetch_mappings(
    session: Session, sql: str, params: Params | None = None
) -> list[Mapping[str, Any]]:
    """The rows by the names of their columns."""
    result = await session.execute(sql, params)
    names = _names(result)
    return [dict(zip(names, row, strict=True)) for row in await result.fetchall()]


def _names(result: Result) -> list[str]:
    # A description makes an object for every column, and a job has many.
    if isinstance(result, Fetched):
        return result.names
    return [column.name for column in result.description or ()]
