"""Rows straight into the tables and out of them, and errors as SQL callers see them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from mainspring.domain.jobs.model import FINAL_STATES
from mainspring.domain.types import JobState, WaitsFor

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


def insert(connection: psycopg.Connection, table: str, **columns: Any) -> None:
    statement = sql.SQL("insert into mainspring.{} ({}) values ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(map(sql.Placeholder, columns)),
    )
    connection.execute(statement, columns)


def insert_definition(connection: psycopg.Connection, key: str, **columns: Any) -> None:
    insert(connection, "definitions", key=key, **{"kind": "python", **columns})


def insert_tenant(connection: psycopg.Connection, tenant_id: str) -> None:
    insert(connection, "tenants", tenant_id=tenant_id)


def insert_job(connection: psycopg.Connection, state: JobState, **columns: Any) -> int:
    """A job in any state, in the table where that state belongs."""
    ((job_id,),) = connection.execute("select nextval('mainspring.job_ids')").fetchall()
    row = {"job_id": job_id, "state": state, "definition": "work", **_required(state), **columns}
    insert(connection, "jobs_history" if state in FINAL_STATES else "jobs", **row)
    return int(job_id)


def _required(state: JobState) -> dict[str, Any]:
    if state in FINAL_STATES:
        return {"started_at": YESTERDAY, "finished_at": datetime.now(UTC)}
    if state is JobState.RUNNING:
        return {"started_at": YESTERDAY, "fence": 1, "worker_id": 7}
    if state is JobState.AWAITING_APPROVAL:
        return {"waits_for": WaitsFor.APPROVAL}
    return {"waits_for": WaitsFor.PARENTS} if state is JobState.BLOCKED else {}


def insert_attempt(connection: psycopg.Connection, job_id: int, **columns: Any) -> None:
    row = {"number": 1, "fence": 1, "worker_id": 7, "started_at": YESTERDAY, "status": "failed"}
    insert(connection, "attempts", job_id=job_id, **{**row, **columns})


def job(connection: psycopg.Connection, job_id: int) -> Mapping[str, Any]:
    """The one row of the job, wherever it is."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from mainspring.job_status where job_id = %s", (job_id,))
        (row,) = cursor.fetchall()
    return row


def count(connection: psycopg.Connection, table: str) -> int:
    statement = sql.SQL("select count(*) from mainspring.{}").format(sql.Identifier(table))
    ((rows,),) = connection.execute(statement).fetchall()
    return int(rows)


@contextmanager
def refused(
    connection: psycopg.Connection, sqlstate: str, message: str = "", **detail: Any
) -> Iterator[None]:
    """What is done inside raises this error of ours, and the transaction lives on."""
    with pytest.raises(psycopg.Error, match=message) as caught, connection.transaction():
        yield
    assert caught.value.sqlstate == sqlstate
    assert json.loads(caught.value.diag.message_detail or "null") == detail


def not_becoming(member: str, role: str) -> str:
    """What is said to whoever names a role that it may not become."""
    return (
        f"{member} may not become {role}; ask an administrator to run: grant {role} to {member} "
        "with set true"
    )
