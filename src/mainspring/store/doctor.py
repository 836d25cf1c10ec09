"""Statements of the doctor. `now` stands for the present instant, for tests."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime

from psycopg import sql

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.checks.access import Link, RequestRole, TableSecurity, TokenAge
from mainspring.domain.checks.queue import (
    LiveWorker,
    Losses,
    Orphans,
    StuckWait,
    Unhandled,
    UnservedQueue,
)
from mainspring.domain.checks.schedules import (
    BrokenSchedule,
    FailingTrigger,
    Herd,
    LongRun,
    Overdue,
    UnhandledEvents,
)
from mainspring.domain.checks.server import Ages, Blocks, Checkpoints
from mainspring.domain.checks.sessions import (
    Connections,
    Hidden,
    LockWait,
    Prepared,
    ReplicationSlot,
    Standby,
    Transaction,
)
from mainspring.domain.checks.tables import Foreign, Options, Relation, TableActivity

_STATEMENTS = load("doctor")
_STUCK = (
    _STATEMENTS["stuck_times"],
    _STATEMENTS["stuck_turns"],
    _STATEMENTS["stuck_parents"],
    _STATEMENTS["stuck_handlers"],
)
_FEW_RUNS = 3
_SMALLEST_HERD = 11
_LOCK_MS = 200

Now = datetime | None


async def begin_check(session: Session, *, statement_ms: int, is_read_only: bool = True) -> int:
    """Bound the statements that follow in the transaction; the server process that runs it."""
    params = {
        "statement_ms": statement_ms,
        "lock_ms": _LOCK_MS,
        "read_only": "on" if is_read_only else "off",
    }
    ((_, _, _, pid),) = await fetch_all(session, _STATEMENTS["begin_check"].sql, params)
    return int(pid)


async def version(session: Session, now: Now = None) -> tuple[int, date]:
    """The version of the server, and the day there."""
    sent = _STATEMENTS["doctor_version"].sql
    ((number, today),) = await fetch_all(session, sent, {"now": now})
    return number, today


async def settings(session: Session, names: Sequence[str]) -> dict[str, str]:
    sent = _STATEMENTS["doctor_settings"].sql
    rows = await fetch_all(session, sent, {"names": list(names)})
    return {name: value for name, value in rows if value is not None}


async def id_ages(session: Session) -> Ages:
    (row,) = await fetch_all(session, _STATEMENTS["id_ages"].sql)
    return Ages(*row)


async def notification_queue(session: Session) -> float:
    """The share that is used."""
    ((share,),) = await fetch_all(session, _STATEMENTS["notification_queue"].sql)
    return float(share)


async def checkpoints(session: Session) -> Checkpoints:
    (row,) = await fetch_all(session, _STATEMENTS["checkpoints"].sql)
    return Checkpoints(*row)


async def block_reads(session: Session) -> Blocks:
    (row,) = await fetch_all(session, _STATEMENTS["block_reads"].sql)
    return Blocks(*row)


async def open_transactions(session: Session, now: Now = None) -> list[Transaction]:
    rows = await fetch_all(session, _STATEMENTS["open_transactions"].sql, {"now": now})
    return [Transaction(*row) for row in rows]


async def hidden_sessions(session: Session) -> Hidden:
    (row,) = await fetch_all(session, _STATEMENTS["hidden_sessions"].sql)
    return Hidden(*row)


async def prepared_transactions(session: Session, now: Now = None) -> list[Prepared]:
    rows = await fetch_all(session, _STATEMENTS["prepared_transactions"].sql, {"now": now})
    return [Prepared(*row) for row in rows]


async def replication_slots(session: Session) -> list[ReplicationSlot]:
    rows = await fetch_all(session, _STATEMENTS["replication_slots"].sql)
    return [ReplicationSlot(*row) for row in rows]


async def standbys(session: Session) -> list[Standby]:
    return [Standby(*row) for row in await fetch_all(session, _STATEMENTS["standbys"].sql)]


async def used_connections(session: Session) -> Connections:
    (row,) = await fetch_all(session, _STATEMENTS["used_connections"].sql, {})
    return Connections(*row)


async def lock_waits(session: Session, now: Now = None) -> list[LockWait]:
    rows = await fetch_all(session, _STATEMENTS["lock_waits"].sql, {"now": now})
    return [LockWait(*row) for row in rows]


async def table_activity(session: Session, now: Now = None) -> list[TableActivity]:
    rows = await fetch_all(session, _STATEMENTS["table_activity"].sql, {"now": now})
    return [TableActivity(*row) for row in rows]


async def queue_relations(session: Session) -> list[Relation]:
    rows = await fetch_all(session, _STATEMENTS["queue_relations"].sql)
    return [Relation(*row) for row in rows]


async def invalid_indexes(session: Session) -> list[tuple[str, str]]:
    """Names of indexes and of their tables."""
    rows = await fetch_all(session, _STATEMENTS["invalid_indexes"].sql)
    return [(index, table) for index, table in rows]


async def added_objects(
    session: Session,
    *,
    tables: Collection[str],
    indexes: Collection[str],
    triggers: Collection[str],
) -> list[Foreign]:
    """Indexes, triggers and rules on the tables that have none of the names."""
    params = {"tables": list(tables), "indexes": list(indexes), "triggers": list(triggers)}
    rows = await fetch_all(session, _STATEMENTS["added_objects"].sql, params)
    return [Foreign(*row) for row in rows]


async def storage_options(session: Session) -> dict[str, Options]:
    """By table."""
    rows = await fetch_all(session, _STATEMENTS["storage_options"].sql)
    return {table: dict(each.split("=", 1) for each in options) for table, options in rows}


async def partition_gaps(session: Session, now: Now = None) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["partition_gaps"].sql, {"now": now})
    return [name for (name,) in rows]


async def stray_rows(session: Session, now: Now = None) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["stray_rows"].sql, {"now": now})
    return [name for (name,) in rows]


async def overdue_partitions(session: Session) -> list[str]:
    rows = await fetch_all(session, _STATEMENTS["overdue_partitions"].sql)
    return [name for (name,) in rows]


async def expired_keys(session: Session, now: Now = None) -> int:
    ((count,),) = await fetch_all(session, _STATEMENTS["expired_keys"].sql, {"now": now})
    return int(count)


async def unused_limits(session: Session) -> list[str]:
    return [name for (name,) in await fetch_all(session, _STATEMENTS["unused_limits"].sql)]


async def key_relations(session: Session) -> list[Relation]:
    return [Relation(*row) for row in await fetch_all(session, _STATEMENTS["key_relations"].sql)]


async def largest_relations(session: Session) -> list[Relation]:
    rows = await fetch_all(session, _STATEMENTS["largest_relations"].sql)
    return [Relation(*row) for row in rows]


async def default_retention(session: Session) -> str | None:
    row = await fetch_one(session, _STATEMENTS["default_retention"].sql)
    return None if row is None else str(row[0])


async def orphaned_jobs(session: Session) -> Orphans:
    (row,) = await fetch_all(session, _STATEMENTS["orphaned_jobs"].sql)
    return Orphans(*row)


async def stuck_waits(session: Session, now: Now = None) -> list[StuckWait]:
    found = []
    for statement in _STUCK:
        rows = await fetch_all(session, statement.sql, {"now": now})
        found += [StuckWait(*row) for row in rows]
    return found


async def unserved_queues(session: Session) -> list[UnservedQueue]:
    rows = await fetch_all(session, _STATEMENTS["unserved_queues"].sql)
    return [UnservedQueue(*row) for row in rows]


async def unhandled_jobs(session: Session, now: Now = None) -> list[Unhandled]:
    rows = await fetch_all(session, _STATEMENTS["unhandled_jobs"].sql, {"now": now})
    return [Unhandled(*row) for row in rows]


async def live_workers(session: Session, now: Now = None) -> list[LiveWorker]:
    rows = await fetch_all(session, _STATEMENTS["live_workers"].sql, {"now": now})
    return [LiveWorker(*row) for row in rows]


async def lost_attempts(session: Session, now: Now = None) -> Losses:
    (row,) = await fetch_all(session, _STATEMENTS["lost_attempts"].sql, {"now": now})
    return Losses(*row)


async def overdue_schedules(session: Session, now: Now = None) -> Overdue | None:
    row = await fetch_one(session, _STATEMENTS["overdue_schedules"].sql, {"now": now})
    return None if row is None else Overdue(*row)


async def broken_schedules(session: Session) -> list[BrokenSchedule]:
    rows = await fetch_all(session, _STATEMENTS["broken_schedules"].sql, {"few": _FEW_RUNS})
    return [BrokenSchedule(*row) for row in rows]


async def schedule_herds(session: Session, now: Now = None) -> list[Herd]:
    params = {"now": now, "least": _SMALLEST_HERD - 1}
    rows = await fetch_all(session, _STATEMENTS["schedule_herds"].sql, params)
    return [Herd(*row) for row in rows]


async def long_runs(session: Session) -> list[LongRun]:
    return [LongRun(*row) for row in await fetch_all(session, _STATEMENTS["long_runs"].sql)]


async def waiting_events(session: Session, now: Now = None) -> UnhandledEvents:
    (row,) = await fetch_all(session, _STATEMENTS["waiting_events"].sql, {"now": now})
    return UnhandledEvents(*row)


async def failing_triggers(session: Session) -> list[FailingTrigger]:
    rows = await fetch_all(session, _STATEMENTS["failing_triggers"].sql)
    return [FailingTrigger(*row) for row in rows]


async def own_link(session: Session) -> Link:
    (row,) = await fetch_all(session, _STATEMENTS["own_link"].sql)
    return Link(*row)


async def request_roles(session: Session) -> list[RequestRole]:
    rows = await fetch_all(session, _STATEMENTS["request_roles"].sql)
    return [RequestRole(*row) for row in rows]


async def table_security(session: Session) -> tuple[list[TableSecurity], str]:
    """Our tables, and whom the schema belongs to."""
    rows = await fetch_all(session, _STATEMENTS["table_security"].sql)
    return [TableSecurity(*row[:-1]) for row in rows], rows[0][-1]


async def function_texts(session: Session) -> Mapping[str, Sequence[str]]:
    """The digests of the texts by name."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, digest in await fetch_all(session, _STATEMENTS["function_texts"].sql):
        found[name].append(digest)
    return found


async def active_triggers(session: Session) -> set[str]:
    """Such as `definitions_audit on definitions`."""
    rows = await fetch_all(session, _STATEMENTS["active_triggers"].sql, {})
    return {name for (name,) in rows}


async def token_ages(session: Session, now: Now = None) -> list[TokenAge]:
    rows = await fetch_all(session, _STATEMENTS["token_ages"].sql, {"now": now})
    return [TokenAge(*row) for row in rows]


# What --fix does


async def note_fix(session: Session, check: str, action: str) -> None:
    """In the audit, as whoever the transaction acts for."""
    await session.execute(_STATEMENTS["note_fix"].sql, {"check": check, "action": action})


async def drop_invalid_index(session: Session, name: str) -> None:
    """In a transaction, unlike `concurrently`, so that it works through a pooler."""
    await session.execute(
        sql.SQL("drop index mainspring.{}").format(sql.Identifier(name)).as_string()
    )


async def set_storage(session: Session, table: str, options: Options) -> None:
    pairs = [
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in options.items()
    ]
    await session.execute(
        sql.SQL("alter table mainspring.{} set ({})")
        .format(sql.Identifier(table), sql.SQL(", ").join(pairs))
        .as_string()
    )


async def reset_storage(session: Session, table: str, names: Sequence[str]) -> None:
    listed = sql.SQL(", ").join([_parameter(name) for name in names])
    await session.execute(
        sql.SQL("alter table mainspring.{} reset ({})")
        .format(sql.Identifier(table), listed)
        .as_string()
    )


def _parameter(name: str) -> sql.Composable:
    return sql.SQL(".").join([sql.Identifier(part) for part in name.split(".")])


async def analyze(session: Session, table: str) -> None:
    await session.execute(
        sql.SQL("analyze mainspring.{}").format(sql.Identifier(table)).as_string()
    )
