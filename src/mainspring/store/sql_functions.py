"""SQL functions that definitions name, called under the role they name."""

from datetime import timedelta

from mainspring.db.sessions import Session
from mainspring.db.statements import load

_STATEMENTS = load("sql_functions")


async def call(
    session: Session,
    function: str,
    *,
    role: str,
    payload: str,
    limit: timedelta,
) -> object:
    """What the function answered; the server itself ends it after the limit. The caller has a
    transaction open, in which it runs."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    await session.execute(_STATEMENTS["limit_statement"].sql, {"timeout": timeout})
    params = {"function": function, "role": role, "payload": payload}
    cursor = await session.execute(_STATEMENTS["call_function"].sql, params)
    ((answer,),) = await cursor.fetchall()
    await session.execute(_STATEMENTS["limit_statement"].sql, {"timeout": "0"})
    return answer
