"""Statements of housekeeping."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson
from psycopg import sql

from mainspring.db.sessions import Session, fetch_all
from mainspring.db.statements import load
from mainspring.domain.housekeeping import IndexSize

_STATEMENTS = load("housekeeping")
# Who waits for the lock of a table keeps those behind it waiting as well.
_LOCK_MS = 200


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


async def begin_cleanup(session: Session, *, statement_ms: int, lock: str) -> bool:
    """Bound the statements that follow in the transaction; whether nobody else has the lock."""
    params = {"statement_ms": statement_ms, "lock_ms": _LOCK_MS, "lock": lock}
    cursor = await session.execute(_STATEMENTS["begin_cleanup"].sql, params)
    ((_, _, is_ours),) = await cursor.fetchall()
    return bool(is_ours)


async def unvalidated_constraints(session: Session) -> list[tuple[str, str]]:
    """The constraints that old rows were not checked for: table and name."""
    cursor = await session.execute(_STATEMENTS["unvalidated_constraints"].sql)
    return [(table, name) for table, name in await cursor.fetchall()]


async def validate_constraint(session: Session, table: str, name: str) -> None:
    """Check old rows too; whoever reads and writes them is not disturbed."""
    params = {"table": table, "name": name}
    await session.execute(_STATEMENTS["validate_constraint"].sql, params)


async def large_indexes(session: Session, *, min_bytes: int) -> list[IndexSize]:
    """The unfinished ones first, then the largest."""
    params = {"min_bytes": min_bytes}
    cursor = await session.execute(_STATEMENTS["large_indexes"].sql, params)
    return [IndexSize(*row) for row in await cursor.fetchall()]


async def rebuild_index(session: Session, name: str) -> None:
    """Rebuild an index while it is used; not in a transaction."""
    await session.execute(
        sql.SQL("reindex index concurrently mainspring.{}").format(sql.Identifier(name)).as_string()
    )


async def drop_index(session: Session, name: str) -> None:
    """Drop an index that nobody uses; not in a transaction."""
    await session.execute(
        sql.SQL("drop index concurrently mainspring.{}").format(sql.Identifier(name)).as_string()
    )


async def lock_cleanup(session: Session, *, lock_ms: int) -> bool:
    """Whether nobody else cleans up, until `unlock_cleanup`; statements of the session then wait so
    long for a lock."""
    cursor = await session.execute(_STATEMENTS["lock_cleanup"].sql)
    ((is_ours,),) = await cursor.fetchall()
    if is_ours:
        await session.execute(_STATEMENTS["wait_briefly"].sql, {"lock_ms": lock_ms})
    return bool(is_ours)


async def unlock_cleanup(session: Session) -> None:
    await session.execute(_STATEMENTS["wait_briefly"].sql, {"lock_ms": 0})
    await session.execute(_STATEMENTS["unlock_cleanup"].sql)
