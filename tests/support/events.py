"""Events for tests: triggers written by plain SQL, events emitted by it, and what came of them."""

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.support.calls import call

Row = dict[str, Any]

HANDLED = "select count(*) from mainspring.events where handled_at is not null"
RESTING = """
select count(*), bool_and(state = 'idle' and state_change < now() - interval '0.3 s')
  from pg_stat_activity
 where application_name = 'mainspring dispatch' and datname = current_database()
"""
LISTENING = """
select count(*) from pg_stat_activity
 where application_name = 'mainspring listen' and state = 'idle' and datname = current_database()
"""


def insert_trigger(connection: psycopg.Connection, name: str = "resync", **columns: Any) -> int:
    """A trigger as plain SQL adds it: for provider.*, of the definition `work`, which is added
    where it is missing."""
    row: Row = {"name": name, "event": "provider.*", "definition": "work", **columns}
    values = {key: Jsonb(value) if isinstance(value, dict) else value for key, value in row.items()}
    statement = sql.SQL(
        "insert into mainspring.triggers ({}) values ({}) returning trigger_id"
    ).format(
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(map(sql.Placeholder, values)),
    )
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('work', 'python')"
        " on conflict do nothing"
    )
    ((trigger_id,),) = connection.execute(statement, values).fetchall()
    return int(trigger_id)


def emit(
    connection: psycopg.Connection,
    name: str = "provider.changed",
    context: Row | None = None,
    **options: Any,
) -> int:
    (event_id,) = call(connection, "emit", name, context=Jsonb(context or {}), **options)
    return int(event_id)


def emit_many(connection: psycopg.Connection, count: int, tenant: str = "default") -> None:
    """In one transaction; the context of each is its number."""
    connection.execute(
        "select mainspring.emit('provider.changed', jsonb_build_object('number', number),"
        " tenant => %s) from generate_series(1, %s) as number",
        (tenant, count),
    )


def event(connection: psycopg.Connection, event_id: int) -> Row:
    query = "select * from mainspring.event_status where event_id = %s"
    (row,) = _rows(connection, query, event_id)
    return row


def handled(connection: psycopg.Connection) -> int:
    ((count,),) = connection.execute(HANDLED.encode()).fetchall()
    return int(count)


def dispatches(connection: psycopg.Connection, event_id: int | None = None) -> list[Row]:
    """In the order they were asked for."""
    query = (
        "select * from mainspring.dispatch_status where event_id = coalesce(%s, event_id)"
        " order by event_id, replay, trigger_id"
    )
    return _rows(connection, query, event_id)


def outcomes(connection: psycopg.Connection, event_id: int | None = None) -> list[str]:
    return [dispatch["outcome"] for dispatch in dispatches(connection, event_id)]


def jobs(connection: psycopg.Connection) -> list[Row]:
    return _rows(connection, "select * from mainspring.job_status order by job_id")


def audit(connection: psycopg.Connection, name: str = "resync") -> list[Row]:
    query = (
        "select * from mainspring.audit where noun = 'trigger' and subject = %s order by audit_id"
    )
    return _rows(connection, query, name)


def is_resting(connection: psycopg.Connection, dispatchers: int = 1) -> bool:
    """Whether so many dispatchers sleep, and can be woken."""
    return connection.execute(RESTING.encode()).fetchone() == (
        dispatchers,
        True,
    ) and connection.execute(LISTENING.encode()).fetchone() == (dispatchers,)


def _rows(connection: psycopg.Connection, query: str, *values: object) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), values).fetchall()
