"""Statements of housekeeping."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain.housekeeping import ServerHealth, TableHealth

_STATEMENTS = load("housekeeping")
_TABLES = 20


def install_schedules(specs: Sequence[Mapping[str, Any]]) -> Call:
    """Each row is (name,) of a schedule that was never installed before."""
    return Call(_STATEMENTS["install_schedules"].sql, {"specs": orjson.dumps(list(specs)).decode()})


async def prune_table(
    connection: AsyncConnection[Any], table: str, column: str, *, age: timedelta, batch: int
) -> int:
    """How many rows were removed; call again while it is the batch."""
    params = {"table": table, "column": column, "age": age, "batch": batch}
    cursor = await connection.execute(_STATEMENTS["prune_table"].sql, params)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def table_health(connection: AsyncConnection[Any]) -> list[TableHealth]:
    """The tables with the most dead rows."""
    cursor = await connection.execute(_STATEMENTS["table_health"].sql, {"limit": _TABLES})
    return [TableHealth(*row) for row in await cursor.fetchall()]


async def server_health(connection: AsyncConnection[Any]) -> ServerHealth:
    cursor = await connection.execute(_STATEMENTS["server_health"].sql)
    (row,) = await cursor.fetchall()
    return ServerHealth(*row)
