"""One of our statements on the caller's own connection, inside the caller's own transaction.

Nothing here begins, commits or rolls back. Where a connection comes from is read off the names
of its classes, so that no library is imported which the caller does not use itself.

    psycopg      the statement as it is, on a cursor of our own
    Django       the statement as it is, on Django's cursor
    asyncpg      %(name)s becomes $1, $2 ...
    SQLAlchemy   %(name)s becomes :name, and every other colon is escaped
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.sql_errors import translated
from mainspring.domain.errors import UnsupportedConnection

Params = Mapping[str, Any]
Rows = list[tuple[Any, ...]]

_ACCEPTED = (
    "a psycopg Connection or AsyncConnection, an asyncpg Connection, a SQLAlchemy Connection, "
    "Session, AsyncConnection or AsyncSession on PostgreSQL, or a Django connection to PostgreSQL"
)
# A server-side cursor, which the caller may have asked for, cannot run every statement.
_SQLALCHEMY_OPTIONS = MappingProxyType({"stream_results": False, "yield_per": None})

_PIECE = re.compile(r"%\((?P<name>\w+)\)[sbt]|%%|:")
_JSON = re.compile(r"%\(\w+\)[sbt](?=::jsonb\b(?!\[))")


@dataclass(frozen=True, slots=True)
class Call:
    """A statement that returns rows, with %(name)s placeholders and % doubled, and its values."""

    sql: str
    params: Params


def is_async_connection(connection: object) -> bool:
    """Raises UnsupportedConnection for what is no connection that we can use."""
    return _kind(connection) in _ASYNC


def run(connection: object, call: Call) -> Rows:
    if is_async_connection(connection):
        raise UnsupportedConnection(
            f"{_type_name(connection)} is an async connection; use .aenqueue(...) or another "
            "async method with it"
        )
    with translated():
        return _BLOCKING[_kind(connection)](connection, call.sql, _plain_values(call.params))


async def arun(connection: object, call: Call) -> Rows:
    if not is_async_connection(connection):
        raise UnsupportedConnection(
            f"{_type_name(connection)} is a blocking connection; use .enqueue(...) or another "
            "blocking method with it"
        )
    with translated():
        return await _ASYNC[_kind(connection)](connection, call.sql, _plain_values(call.params))


@cache
def with_numbers(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with $1, $2 ... and the names they stand for, in that order."""
    numbers: dict[str, int] = {}

    def rewrite(piece: re.Match[str]) -> str:
        name = piece["name"]
        if name is None:
            return piece[0][0]
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    return _PIECE.sub(rewrite, _with_json_as_text(sql)), tuple(numbers)


@cache
def with_colons(sql: str) -> str:
    """The statement with :name, as SQLAlchemy's text() reads it."""

    def rewrite(piece: re.Match[str]) -> str:
        name = piece["name"]
        if name is None:
            return {"%%": "%", ":": r"\:"}[piece[0]]
        # text() takes :name for a parameter only if no word or colon stands before it.
        return f" :{name}"

    return _PIECE.sub(rewrite, _with_json_as_text(sql))


def _with_json_as_text(sql: str) -> str:
    # A codec that the caller set for jsonb would encode our JSON once more.
    return _JSON.sub(r"\g<0>::text", sql)


def _plain_values(params: Params) -> dict[str, Any]:
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    """Our arrays as lists: a connection older than our import does not know them."""
    match value:
        case TextArray(values):
            return [None if text is None else text.decode() for text in values]
        case IntegerArray(values):
            return list(values)
    return value


def _kind(connection: object) -> str:
    for ancestor in type(connection).__mro__:
        name = f"{ancestor.__module__}.{ancestor.__qualname__}"
        if name in _BLOCKING or name in _ASYNC:
            return name
    raise _refusal(_type_name(connection))


def _type_name(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _require_postgresql(connection: object, found: str) -> None:
    if found != "postgresql":
        raise _refusal(f"{_type_name(connection)} on {found}")


def _refusal(found: str) -> UnsupportedConnection:
    return UnsupportedConnection(f"cannot use {found} as a connection; pass {_ACCEPTED}")


def _run_psycopg(connection: psycopg.Connection[Any], sql: str, values: Params) -> Rows:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(sql, values, prepare=_prepare(connection.cursor_factory))
        return cursor.fetchall()


async def _arun_psycopg(connection: psycopg.AsyncConnection[Any], sql: str, values: Params) -> Rows:
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(sql, values, prepare=_prepare(connection.cursor_factory))
        return await cursor.fetchall()


def _prepare(cursor_factory: type[Any]) -> bool | None:
    # Who binds on the client may sit behind a pooler that loses prepared statements.
    binds_on_client = issubclass(cursor_factory, psycopg.ClientCursor | psycopg.AsyncClientCursor)
    return False if binds_on_client else None


async def _arun_asyncpg(connection: Any, sql: str, values: Params) -> Rows:
    numbered, names = with_numbers(sql)
    rows = await connection.fetch(numbered, *(values[name] for name in names))
    return [tuple(row) for row in rows]


def _run_django(connection: Any, sql: str, values: Params) -> Rows:
    _require_postgresql(connection, connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def _run_sqlalchemy(connection: Any, sql: str, values: Params) -> Rows:
    _require_postgresql(connection, connection.dialect.name)
    rows = connection.execute(_text(sql), values, execution_options=_SQLALCHEMY_OPTIONS)
    return [tuple(row) for row in rows]


async def _arun_sqlalchemy(connection: Any, sql: str, values: Params) -> Rows:
    _require_postgresql(connection, connection.dialect.name)
    rows = await connection.execute(_text(sql), values, execution_options=_SQLALCHEMY_OPTIONS)
    return [tuple(row) for row in rows]


def _run_session(session: Any, sql: str, values: Params) -> Rows:
    return _run_sqlalchemy(session.connection(), sql, values)


async def _arun_session(session: Any, sql: str, values: Params) -> Rows:
    return await _arun_sqlalchemy(await session.connection(), sql, values)


@cache
def _text(sql: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415 - optional; the caller has imported it already

    return text(with_colons(sql))


_BLOCKING: Mapping[str, Callable[[Any, str, Params], Rows]] = MappingProxyType(
    {
        "psycopg.Connection": _run_psycopg,
        "sqlalchemy.engine.base.Connection": _run_sqlalchemy,
        "sqlalchemy.orm.session.Session": _run_session,
        "sqlalchemy.orm.scoping.scoped_session": _run_session,
        "django.db.backends.base.base.BaseDatabaseWrapper": _run_django,
        "django.utils.connection.ConnectionProxy": _run_django,
    }
)
_ASYNC: Mapping[str, Callable[[Any, str, Params], Awaitable[Rows]]] = MappingProxyType(
    {
        "psycopg.AsyncConnection": _arun_psycopg,
        "asyncpg.connection.Connection": _arun_asyncpg,
        "asyncpg.pool.PoolConnectionProxy": _arun_asyncpg,
        "sqlalchemy.ext.asyncio.engine.AsyncConnection": _arun_sqlalchemy,
        "sqlalchemy.ext.asyncio.session.AsyncSession": _arun_session,
        "sqlalchemy.ext.asyncio.scoping.async_scoped_session": _arun_session,
    }
)
