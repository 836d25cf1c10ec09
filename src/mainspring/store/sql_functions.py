"""SQL functions that definitions name: found by us, called on a connection of their role."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.types.json import Jsonb

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.sql_functions import MAX_ANSWER_BYTES
from mainspring.store.attempts import Report

_STATEMENTS = load("sql_functions")
_PRUNED_AT_ONCE = 1000


class FunctionCall(NamedTuple):
    """How to call a function; `problem` says why it cannot be, `receipt` is the result of an
    earlier attempt of the job that committed it and could not report it."""

    statement: str | None
    search_path: str | None
    takes_payload: bool
    token: bytes
    problem: str | None
    receipt: dict[str, Any] | None


async def find(session: Session, report: Report, spec: Mapping[str, Any]) -> FunctionCall:
    params = {**report._asdict(), "spec": Jsonb(dict(spec)), "most_bytes": MAX_ANSWER_BYTES}
    ((*facts,),) = await fetch_all(session, _STATEMENTS["find_call"].sql, params)
    return FunctionCall(*facts)


async def begin(session: Session, call: FunctionCall, *, role: str, limit: timedelta) -> bool:
    """Prepare the transaction of a foreign session; the server itself ends what takes longer than
    the limit. False if the login has rights of ours that the role has not."""
    timeout = f"{max(int(limit.total_seconds() * 1000), 1)}ms"
    params = {"timeout": timeout, "search_path": call.search_path, "role": role}
    row = await fetch_one(session, _STATEMENTS["begin_call"].sql, params)
    return row is not None and not row[-1]


async def call(
    connection: AsyncConnection[Any], found: FunctionCall, *, payload: str
) -> tuple[str | None, int | None]:
    """The answer as JSON text with its size in bytes; no text if it is too large."""
    async with AsyncRawCursor(connection) as cursor:
        # In binary, since that way the server takes one statement and no more.
        params = [payload] if found.takes_payload else None
        await cursor.execute((found.statement or "").encode(), params, binary=True)
        row = await cursor.fetchone()
    return (None, None) if row is None else (row[0], row[1])


async def confirm(session: Session, report: Report, token: bytes, *, result: str | None) -> bool:
    """Say in the function's transaction that nothing of it is left to the commit, and that its
    attempt is still the newest; with a result also write the receipt. False if it is not."""
    await session.execute(_STATEMENTS["close_cursors"].sql)
    await session.execute(_STATEMENTS["check_constraints"].sql)
    params = {**report._asdict(), "token": token, "result": result}
    row = await fetch_one(session, _STATEMENTS["record_receipt"].sql, params)
    return row is not None and bool(row[0])


async def prune_receipts(session: Session) -> None:
    """Delete those of jobs that have ended."""
    await session.execute(_STATEMENTS["prune_receipts"].sql, {"most": _PRUNED_AT_ONCE})


async def has_role(session: Session, role: str) -> bool:
    row = await fetch_one(session, _STATEMENTS["has_role"].sql, {"role": role})
    return row is not None and bool(row[0])
