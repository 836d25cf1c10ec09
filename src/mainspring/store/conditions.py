"""The conditions of schedules: a person's SQL, run so that it can only read.

On a connection that is used once, in a transaction that is read-only and rolled back. A cursor is
made for the text, because a cursor takes a single query: no COPY, no DO, no second statement.
"""

from datetime import timedelta
from typing import Any, LiteralString, cast

import psycopg
from psycopg import AsyncConnection, sql

from mainspring.db.role_logins import is_superuser
from mainspring.db.statements import load
from mainspring.domain.errors import InvalidSchedule

_STATEMENTS = load("conditions")


async def first_value(
    connection: AsyncConnection[Any], condition: str, *, role: str | None, limit: timedelta
) -> object:
    """The first column of the first row; None without a row. The login's own role if none is named.

    Raises InvalidSchedule for what is no query."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    judged = is_superuser(connection)
    params = {"role": "none" if role is None or judged else role, "timeout": timeout}
    async with connection.transaction(force_rollback=True):
        await connection.execute(_STATEMENTS["limits"].sql, params)
        try:
            answer = await (_judge if judged else _ask)(connection, condition)
        except psycopg.errors.InvalidCursorDefinition:
            raise InvalidSchedule("condition", "must be a single query") from None
        await connection.execute(_STATEMENTS["unlock"].sql)
    return answer


async def _ask(connection: AsyncConnection[Any], condition: str) -> object:
    await connection.execute(_STATEMENTS["read_only"].sql)
    text = sql.SQL(cast(LiteralString, condition))
    opened = sql.SQL(cast(LiteralString, _STATEMENTS["open_condition"].sql)).format(condition=text)
    # In binary, since that way the server takes one statement and no more.
    await connection.execute(opened, binary=True)
    row = await (await connection.execute(_STATEMENTS["first_row"].sql)).fetchone()
    return row[0] if row else None


async def _judge(connection: AsyncConnection[Any], condition: str) -> object:
    for name in ("make_judge", "bind_judge", "read_only"):
        await connection.execute(_STATEMENTS[name].sql)
    cursor = await connection.execute(_STATEMENTS["judge"].sql, {"condition": condition})
    row = await cursor.fetchone()
    return row[0] if row else None
