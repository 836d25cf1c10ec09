"""SQL functions that definitions name, called under the role they name."""

from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection

from mainspring.db.statements import load

_STATEMENTS = load("sql_functions")


async def call(
    connection: AsyncConnection[Any],
    function: str,
    *,
    role: str,
    payload: str,
    limit: timedelta,
) -> object:
    """What the function answered; the server itself ends it after the limit. The caller has a
    transaction open, in which it runs."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    await connection.execute(_STATEMENTS["limit_statement"].sql, {"timeout": timeout})
    params = {"function": function, "role": role, "payload": payload}
    cursor = await connection.execute(_STATEMENTS["call_function"].sql, params)
    ((answer,),) = await cursor.fetchall()
    await connection.execute(_STATEMENTS["limit_statement"].sql, {"timeout": "0"})
    return answer
