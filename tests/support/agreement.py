"""Verdicts of Python and of SQL on the same rows, on both sides of each bound."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from mainspring.domain.errors import MainspringError
from mainspring.domain.types import (
    LONGEST_DELAY,
)

TICK = timedelta(microseconds=1)
Verdict = bool
Row = dict[str, Any]


def python_accepts(check: Callable[[], object]) -> Verdict:
    try:
        check()
    except MainspringError:
        return False
    return True


def sql_accepts(tx: psycopg.Connection, statement: sql.Composed, values: Row) -> Verdict:
    """Whether it runs; nothing of it stays."""
    try:
        with tx.transaction(force_rollback=True):
            tx.execute(statement, values)
    except psycopg.errors.CheckViolation:
        return False
    except psycopg.Error as error:
        if not (error.sqlstate or "").startswith("MS"):
            raise
        return False
    return True


def insert(table: str, columns: Iterable[str]) -> sql.Composed:
    names = list(columns)
    return sql.SQL("insert into mainspring.{} ({}) values ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join(map(sql.Placeholder, names)),
    )


def call(function: str, arguments: Iterable[str]) -> sql.Composed:
    named = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in arguments
    ]
    return sql.SQL("select mainspring.{}({})").format(
        sql.Identifier(function), sql.SQL(", ").join(named)
    )


def around(field: str, low: Any, high: Any, step: Any) -> list[tuple[Row, Verdict]]:
    """The values on both sides of both bounds."""
    accepted = [({field: low}, True), ({field: high}, True)]
    return [*accepted, ({field: low - step}, False), ({field: high + step}, False)]


def numbers(field: str, low: int, high: int) -> list[tuple[Row, Verdict]]:
    return around(field, low, high, 1)


def durations(field: str, low: timedelta, high: timedelta = LONGEST_DELAY) -> list[Any]:
    return around(field, low, high, TICK)


def words(field: str, known: Iterable[str]) -> list[tuple[Row, Verdict]]:
    return [*(({field: str(word)}, True) for word in known), ({field: "other"}, False)]


def texts(field: str, longest: int) -> list[tuple[Row, Verdict]]:
    accepted = [({field: text}, True) for text in ("x", "ü" * longest)]
    return [*accepted, ({field: ""}, False), ({field: "ü" * (longest + 1)}, False)]


def queues(field: str = "queue") -> list[tuple[Row, Verdict]]:
    wrong = [({field: text}, False) for text in (" ", "a,b", " a", "a ", "a\t", "\na")]
    return [*texts(field, 500), ({field: "a b"}, True), *wrong]


def tags() -> list[tuple[Row, Verdict]]:
    right = [[], ["x"], ["ü" * 500], ["ü" * 500] * 50]
    wrong = [["x"] * 51, [""], ["x", ""], ["ü" * 501], ["x", "ü" * 501], [None], ["x", None]]
    return either("tags", right, wrong)


def either(field: str, right: Iterable[Any], wrong: Iterable[Any]) -> list[tuple[Row, Verdict]]:
    return [*(({field: each}, True) for each in right), *(({field: each}, False) for each in wrong)]
