"""Callers of every kind: a connection with a transaction of its own, whatever the driver."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import django
import psycopg
import pytest
import sqlalchemy
from django import db as django_db
from django.conf import settings as django_settings
from psycopg import conninfo
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from mainspring.db import calls, statements
from mainspring.db.calls import Call, Rows

JOBS = statements.load("jobs")
PAYLOAD = {"text": "50% of :all, a 'quote', a \\ and a ☃", "list": [1, None]}
NO_OPTIONS = {
    "tenant_id": "default",
    "queue": None,
    "priority": None,
    "max_attempts": None,
    "scheduled_for": None,
    "delay": None,
    "deadline": None,
    "dedupe_key": None,
    "dedupe_by": None,
    "dedupe_window": None,
    "idempotency_key": None,
    "on_duplicate": "raise",
    "created_by": None,
    "source": None,
    "delivery": None,
    "correlation_id": None,
    "tags": None,
    "limit_key": None,
    "approvals_needed": None,
    "after": None,
    "on_parent_failure": "cancel",
}
NO_BATCH_OPTIONS = {**NO_OPTIONS, "dedupe_keys": None}
SOON = datetime.now(UTC) + timedelta(days=1)


def enqueue(definition: str = "noop") -> Call:
    params = {"definition": definition, "payload": json.dumps(PAYLOAD)}
    return Call(JOBS["enqueue"].sql, params)


def enqueue_with_options(**options: Any) -> Call:
    params = {**enqueue().params, **NO_OPTIONS, **options}
    return Call(JOBS["enqueue_with_options"].sql, params)


def enqueue_many(payloads: object, **options: Any) -> Call:
    params = {**NO_BATCH_OPTIONS, "definition": "noop", "payloads": payloads, **options}
    return Call(JOBS["enqueue_many"].sql, params)


# The kinds of connection


@dataclass(frozen=True)
class Caller:
    """Who owns a connection and its transaction, blocking whatever the connection is."""

    connection: Any
    run: Callable[[Call], Rows]
    commit: Callable[[], object]
    rollback: Callable[[], object]


def sqlalchemy_url(url: str, driver: str) -> sqlalchemy.URL:
    return sqlalchemy.make_url(url).set(drivername=f"postgresql+{driver}")


@contextmanager
def engine(url: str, driver: str) -> Iterator[sqlalchemy.Engine]:
    pytest.importorskip(driver)
    made = sqlalchemy.create_engine(sqlalchemy_url(url, driver))
    try:
        yield made
    finally:
        made.dispose()


@asynccontextmanager
async def async_engine(url: str, driver: str) -> AsyncIterator[sqlalchemy_asyncio.AsyncEngine]:
    made = sqlalchemy_asyncio.create_async_engine(sqlalchemy_url(url, driver))
    try:
        yield made
    finally:
        await made.dispose()


@contextmanager
def of_psycopg(url: str) -> Iterator[Any]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield connection


@contextmanager
def of_sqlalchemy(url: str, driver: str) -> Iterator[Any]:
    with engine(url, driver) as made, made.connect() as connection:
        yield connection


@contextmanager
def of_sqlalchemy_session(url: str, driver: str) -> Iterator[Any]:
    with engine(url, driver) as made, orm.Session(made) as session:
        yield session


@contextmanager
def of_scoped_session(url: str, driver: str) -> Iterator[Any]:
    with engine(url, driver) as made:
        session = orm.scoped_session(orm.sessionmaker(made))
        yield session
        session.remove()


@contextmanager
def of_django(url: str) -> Iterator[Any]:
    """Django's settings are the process's, so its one connection moves from test to test."""
    if not django_settings.configured:
        engine_name = "django.db.backends.postgresql"
        django_settings.configure(DATABASES={"default": {"ENGINE": engine_name}}, USE_TZ=True)
        django.setup()
    parts = conninfo.conninfo_to_dict(url)
    named = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    connection = django_db.connections["default"]
    connection.settings_dict.update({key: parts.get(name, "") for key, name in named.items()})
    connection.settings_dict["PORT"] = parts.get("port", "")
    connection.set_autocommit(False)
    try:
        yield connection
    finally:
        connection.rollback()
        connection.close()


@contextmanager
def of_django_proxy(url: str) -> Iterator[Any]:
    with of_django(url):
        yield django_db.connection


@asynccontextmanager
async def of_async_psycopg(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def of_asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def of_asyncpg_with_codec(url: str) -> AsyncIterator[Any]:
    async with of_asyncpg(url) as connection:
        for name in ("json", "jsonb"):
            await connection.set_type_codec(
                name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads
            )
        yield connection


@asynccontextmanager
async def of_asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
    ):
        yield connection


@asynccontextmanager
async def of_async_sqlalchemy(url: str, driver: str) -> AsyncIterator[Any]:
    async with async_engine(url, driver) as made, made.connect() as connection:
        yield connection


@asynccontextmanager
async def of_async_session(url: str, driver: str) -> AsyncIterator[Any]:
    async with async_engine(url, driver) as made, sqlalchemy_asyncio.AsyncSession(made) as session:
        yield session


@asynccontextmanager
async def of_async_scoped_session(url: str, driver: str) -> AsyncIterator[Any]:
    async with async_engine(url, driver) as made:
        session = sqlalchemy_asyncio.async_scoped_session(
            sqlalchemy_asyncio.async_sessionmaker(made), scopefunc=lambda: "one"
        )
        yield session
        await session.remove()


BlockingKind = Callable[[str], AbstractContextManager[Any]]
AsyncKind = Callable[[str], AbstractAsyncContextManager[Any]]

BLOCKING: dict[str, BlockingKind] = {
    "psycopg": of_psycopg,
    "sqlalchemy psycopg": partial(of_sqlalchemy, driver="psycopg"),
    "sqlalchemy psycopg2": partial(of_sqlalchemy, driver="psycopg2"),
    "session psycopg": partial(of_sqlalchemy_session, driver="psycopg"),
    "session psycopg2": partial(of_sqlalchemy_session, driver="psycopg2"),
    "scoped session": partial(of_scoped_session, driver="psycopg"),
    "django wrapper": of_django,
    "django proxy": of_django_proxy,
}
ASYNC: dict[str, AsyncKind] = {
    "async psycopg": of_async_psycopg,
    "asyncpg": of_asyncpg,
    "asyncpg with codec": of_asyncpg_with_codec,
    "asyncpg pool": of_asyncpg_pool,
    "async sqlalchemy psycopg": partial(of_async_sqlalchemy, driver="psycopg"),
    "async sqlalchemy asyncpg": partial(of_async_sqlalchemy, driver="asyncpg"),
    "async session psycopg": partial(of_async_session, driver="psycopg"),
    "async session asyncpg": partial(of_async_session, driver="asyncpg"),
    "async scoped session": partial(of_async_scoped_session, driver="asyncpg"),
}


@contextmanager
def blocking_caller(kind: BlockingKind, url: str) -> Iterator[Caller]:
    with kind(url) as connection:
        run = partial(calls.run, connection)
        yield Caller(connection, run, connection.commit, connection.rollback)


@contextmanager
def async_caller(kind: AsyncKind, url: str) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        opened = kind(url)
        connection = runner.run(opened.__aenter__())
        owner = runner.run(transaction_of(connection))
        yield Caller(
            connection,
            run=lambda call: runner.run(calls.arun(connection, call)),
            commit=lambda: runner.run(owner.commit()),
            rollback=lambda: runner.run(owner.rollback()),
        )
        runner.run(opened.__aexit__(None, None, None))


async def transaction_of(connection: Any) -> Any:
    """What commits and rolls back; in asyncpg alone it is not the connection."""
    if not type(connection).__module__.startswith("asyncpg."):
        return connection
    transaction = connection.transaction()
    await transaction.start()
    return transaction
