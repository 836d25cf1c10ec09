"""The conditions of schedules: a person's SQL, run so that it can only read.

On a connection that is used once, in a transaction that is read-only and rolled back. A cursor is
made for the text, because a cursor takes a single query: no COPY, no DO, no second statement. A
login that is a superuser hands the text to a function that can only read.
"""

from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from mainspring.db.role_logins import is_superuser
from mainspring.db.sessions import fetch_one
from mainspring.db.statements import load
from mainspring.domain.errors import InvalidSchedule

_STATEMENTS = load("conditions")


async def first_value(
    connection: AsyncConnection[Any], condition: str, *, role: str | None, limit: timedelta
) -> object:
    """The first column of the first row; None without a row. The login's own role if none is named.

    Raises InvalidSchedule for what is no query."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    reads_all = is_superuser(connection)
    params = {"role": "none" if role is None or reads_all else role, "timeout": timeout}
    async with connection.transaction(force_rollback=True):
        await connection.execute(_STATEMENTS["limits"].sql, params)
        try:
            row = await (_ask_as_reader if reads_all else _ask)(connection, condition)
        except psycopg.errors.InvalidCursorDefinition:
            raise InvalidSchedule("condition", "must be a single query") from None
        await connection.execute(_STATEMENTS["unlock"].sql)
    return row[0] if row else None


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
