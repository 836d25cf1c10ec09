"""The SQL door as a program without Mainspring's Python would use it."""

from typing import Any

import psycopg
from psycopg import sql


def call(connection: psycopg.Connection, function: str, *args: Any, **options: Any) -> list[Any]:
    """The first column of every row that the function returns; options are named notation."""
    named = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in options
    ]
    positional = [sql.Literal(value) for value in args]
    statement = sql.SQL("select * from mainspring.{}({})").format(
        sql.Identifier(function), sql.SQL(", ").join([*positional, *named])
    )
    return [row[0] for row in connection.execute(statement, options).fetchall()]


def enqueue(connection: psycopg.Connection, key: str = "work", /, **options: Any) -> int:
    (job_id,) = call(connection, "enqueue", key, **options)
    return int(job_id)
