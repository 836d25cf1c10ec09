"""Statements of housekeeping."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.housekeeping import ServerHealth, TableHealth

_STATEMENTS = load("housekeeping")
_TABLES = 20
# Who waits for the lock of a table keeps those behind it waiting as well.
_STATEMENT_MS, _LOCK_MS = 10_000, 200


async def install_schedules(session: Session, specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the schedules that were never installed before."""
    params = {"specs": orjson.dumps(list(specs)).decode()}
    rows = await fetch_all(session, _STATEMENTS["install_schedules"].sql, params)
    return [name for (name,) in rows]


async def prune_table(
    session: Session, table: str, column: str, *, age: timedelta, batch: int
) -> int:
    """How many rows were removed; call again while it is the batch."""
    params = {"table": table, "column": column, "age": age, "batch": batch}
    cursor = await session.execute(_STATEMENTS["prune_table"].sql, params)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def table_health(session: Session) -> list[TableHealth]:
    """The tables with the most dead rows."""
    cursor = await session.execute(_STATEMENTS["table_health"].sql, {"limit": _TABLES})
    return [TableHealth(*row) for row in await cursor.fetchall()]


async def server_health(session: Session) -> ServerHealth:
    cursor = await session.execute(_STATEMENTS["server_health"].sql)
    (row,) = await cursor.fetchall()
    return ServerHealth(*row)


async def begin_cleanup(session: Session) -> bool:
    """Bound the statements that follow in the transaction; whether nobody else cleans up."""
    params = {"statement_ms": _STATEMENT_MS, "lock_ms": _LOCK_MS}
    cursor = await session.execute(_STATEMENTS["begin_cleanup"].sql, params)
    ((_, _, is_ours),) = await cursor.fetchall()
    return bool(is_ours)
