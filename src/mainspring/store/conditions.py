"""The conditions of schedules: a person's SQL, run so that it can only read.

On a connection that is used once, in a transaction that is read-only and rolled back. A cursor is
made for the text, because a cursor takes a single query: no COPY, no DO, no second statement. A
login that is a superuser hands the text to a function that can only read.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from mainspring.db.role_logins import is_superuser
from mainspring.db.sessions import Session, fetch_one
from mainspring.db.statements import load
from mainspring.domain.errors import InvalidSchedule

_STATEMENTS = load("conditions")
# What PostgreSQL takes for a cursor, and whether it has a column; neither is run.
_AS_CURSOR = sql.SQL("explain (analyze false) declare condition no scroll cursor for {}")
_AS_TABLE = sql.SQL("explain (analyze false) with asked (first) as ({}\n) table asked")
_NO_QUERY = (
    psycopg.errors.SyntaxError,
    psycopg.errors.InvalidCursorDefinition,
    psycopg.errors.FeatureNotSupported,
)


async def first_value(
    connection: AsyncConnection[Any], condition: str, *, role: str | None, limit: timedelta
) -> object:
    """The first column of the first row; None without a row. The login's own role if none is named.

    Raises InvalidSchedule for what is no query."""
    async with _limited(connection, role, limit) as reads_all:
        try:
            row = await (_ask_as_reader if reads_all else _ask)(connection, condition)
        except psycopg.errors.InvalidCursorDefinition:
            raise InvalidSchedule("condition", "must be a single query") from None
        await connection.execute(_STATEMENTS["unlock"].sql)
    return row[0] if row else None


async def find_problem(
    connection: AsyncConnection[Any], condition: str, *, role: str | None, limit: timedelta
) -> str | None:
    """Why it can never be asked, without asking it; None if there is no such reason. What it names
    need not exist yet."""
    text = sql.SQL(condition)
    try:
        await _plan(connection, _AS_CURSOR.format(text), role=role, limit=limit)
    except _NO_QUERY as error:
        return f"must be a single select ({error.diag.message_primary})"
    except psycopg.Error:
        return None
    with suppress(psycopg.Error):
        try:
            await _plan(connection, _AS_TABLE.format(text), role=role, limit=limit)
        except psycopg.errors.InvalidColumnReference:
            return "must return a column"
    return None


async def may_run_as(session: Session, role: str) -> bool:
    """Whether whoever has the session may have a condition run as the role."""
    row = await fetch_one(session, _STATEMENTS["may_run_as"].sql, {"role": role})
    return row is not None and bool(row[0])


@asynccontextmanager
async def _limited(
    connection: AsyncConnection[Any], role: str | None, limit: timedelta
) -> AsyncIterator[bool]:
    """A transaction that runs as the role, ends after a while and is rolled back; whether the login
    is a superuser."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    reads_all = is_superuser(connection)
    params = {"role": "none" if role is None or reads_all else role, "timeout": timeout}
    async with connection.transaction(force_rollback=True):
        await connection.execute(_STATEMENTS["limits"].sql, params)
        yield reads_all


async def _plan(
    connection: AsyncConnection[Any],
    explanation: sql.Composed,
    *,
    role: str | None,
    limit: timedelta,
) -> None:
    async with _limited(connection, role, limit) as reads_all:
        if reads_all:
            await _ask_as_reader(connection, explanation.as_string(connection))
        else:
            await connection.execute(_STATEMENTS["read_only"].sql)
            await connection.execute(explanation, binary=True)


async def _ask(connection: AsyncConnection[Any], condition: str) -> tuple[Any, ...] | None:
    await connection.execute(_STATEMENTS["read_only"].sql)
    # In binary, since that way the server takes one statement and no more.
    await connection.execute(
        sql.SQL("declare condition no scroll cursor for {}").format(sql.SQL(condition)),
        binary=True,
    )
    return await (await connection.execute("fetch next in condition")).fetchone()


async def _ask_as_reader(
    connection: AsyncConnection[Any], condition: str
) -> tuple[Any, ...] | None:
    params = {"condition": condition}
    return await fetch_one(connection, _STATEMENTS["ask_as_reader"].sql, params)
