"""What the database says of jobs, attempts and workers."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

Row = dict[str, Any]


def job(connection: psycopg.Connection, job_id: int) -> Row:
    (row,) = _rows(connection, "select * from mainspring.job_status where job_id = %s", job_id)
    return row


def state(connection: psycopg.Connection, job_id: int) -> str:
    return str(job(connection, job_id)["state"])


def attempts(connection: psycopg.Connection, job_id: int) -> list[Row]:
    """First to last, the running one included."""
    query = "select * from mainspring.attempt_status where job_id = %s order by number"
    return _rows(connection, query, job_id)


def statuses(connection: psycopg.Connection, job_id: int) -> list[str]:
    return [attempt["status"] for attempt in attempts(connection, job_id)]


def states(connection: psycopg.Connection) -> dict[str, int]:
    """How many jobs are in each state."""
    query = "select state, count(*) from mainspring.job_status group by state"
    return dict(connection.execute(query).fetchall())


def are_all(connection: psycopg.Connection, wanted: str) -> bool:
    """Whether every job is in the state."""
    return list(states(connection)) == [wanted]


def notes(connection: psycopg.Connection, what: str) -> list[Row]:
    """What handlers wrote down, in that order."""
    return _rows(connection, "select * from notes where what = %s order by at", what)


def workers(connection: psycopg.Connection) -> list[Row]:
    return _rows(connection, "select * from mainspring.worker_status order by worker_id")


def are_idle(connection: psycopg.Connection, workers: int = 1) -> bool:
    """Whether so many workers listen and none has looked for jobs for longer than it rests
    between its first looks."""
    row = connection.execute(
        "select count(*) filter (where application_name = 'mainspring listen' and state = 'idle'),"
        " bool_and(clock_timestamp() - state_change > interval '1 second')"
        "     filter (where application_name in ('mainspring listen', 'mainspring claim'))"
        " from pg_stat_activity where datname = current_database()"
    ).fetchone()
    return row == (workers, True)


def _rows(connection: psycopg.Connection, query: str, *values: object) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, values).fetchall()
