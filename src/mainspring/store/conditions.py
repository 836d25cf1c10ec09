"""The conditions of schedules: a person's SQL, run so that it can only read."""

from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.statements import load
from mainspring.domain.errors import InvalidSchedule

_STATEMENTS = load("conditions")


async def first_value(
    connection: AsyncConnection[Any], sql: str, *, role: str, limit: timedelta
) -> object:
    """The first column of the first row; None without a row.

    Raises InvalidSchedule for a statement that is no query."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    async with connection.transaction(force_rollback=True):
        await connection.execute(_STATEMENTS["read_only"].sql)
        await connection.execute(_STATEMENTS["limits"].sql, {"role": role, "timeout": timeout})
        # In binary, since that way the server takes one statement and no more.
        cursor = await connection.execute(sql.encode(), binary=True)
        if not cursor.description:
            raise InvalidSchedule("condition", "is no query; it must return a column")
        row = await cursor.fetchone()
    await connection.execute(_STATEMENTS["unlock"].sql)
    return row[0] if row else None
