"""Statements on schedulers and servers, and on all processes together."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_mappings, fetch_one
from mainspring.db.statements import load
from mainspring.domain.processes import (
    Activity,
    ClockReading,
    Process,
    ProcessFacts,
    ProcessKind,
    QueueAge,
)
from mainspring.store.rows.clocks import clock_params

_STATEMENTS = load("processes")


async def register(
    session: Session, facts: ProcessFacts, activity: Activity, *, lease: timedelta
) -> int:
    params = {
        "kind": facts.kind,
        "name": facts.name,
        "host": facts.host,
        "pid": facts.pid,
        "identity": facts.identity,
        "version": facts.version,
        "schema_number": facts.schema_number,
        "lease": lease,
        "facts": orjson.dumps(activity.facts).decode(),
    }
    ((process_id,),) = await fetch_all(session, _STATEMENTS["register_process"].sql, params)
    return int(process_id)


async def renew(
    session: Session,
    process_id: int,
    activity: Activity,
    *,
    lease: timedelta,
    clock: ClockReading | None,
) -> float | None:
    """When, in seconds of the database's clock; None if the row is gone."""
    idle = activity.idle_seconds
    params = {
        "process_id": process_id,
        "lease": lease,
        "facts": orjson.dumps(activity.facts).decode(),
        "idle": None if idle is None else timedelta(seconds=idle),
        **clock_params(clock),
    }
    row = await fetch_one(session, _STATEMENTS["renew_process"].sql, params)
    return None if row is None else row[0]


async def remove(session: Session, process_id: int) -> None:
    await session.execute(_STATEMENTS["remove_process"].sql, {"process_id": process_id})


async def prune(session: Session) -> None:
    """Remove those that have been silent for an hour."""
    await session.execute(_STATEMENTS["prune_processes"].sql)


async def list_processes(
    session: Session, *, kinds: Sequence[ProcessKind], before: int | None, limit: int
) -> list[Process]:
    chosen = [str(kind) for kind in kinds] or None
    params = {"kinds": chosen, "before": before, "limit": limit}
    rows = await fetch_mappings(session, _STATEMENTS["list_processes"].sql, params)
    return [Process.of({**row, "kind": ProcessKind(row["kind"])}) for row in rows]


async def oldest_event(session: Session) -> datetime | None:
    """When the event was emitted that has waited for a dispatcher for longest."""
    row = await fetch_one(session, _STATEMENTS["oldest_event"].sql)
    return None if row is None else row[0]


async def oldest_ready(session: Session) -> list[QueueAge]:
    rows = await fetch_all(session, _STATEMENTS["oldest_ready"].sql)
    return sorted(QueueAge(*row) for row in rows)


async def read_database(session: Session) -> tuple[str, int]:
    """The version of PostgreSQL and the number of the schema."""
    ((version, schema_number),) = await fetch_all(session, _STATEMENTS["read_database"].sql)
    return version, schema_number
