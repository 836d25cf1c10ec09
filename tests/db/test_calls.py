"""Our statements on every kind of connection a caller may own, in the caller's transaction."""

import asyncio
import json
import subprocess
import sys
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
from django.db import transaction as django_transaction
from psycopg import conninfo
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from mainspring.db import calls, statements
from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.calls import Call, Rows
from mainspring.db.templates import fresh_database
from mainspring.domain.errors import (
    DuplicateJob,
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    SchemaMissing,
    UnknownDefinition,
    UnsupportedConnection,
)

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
    "correlation_id": None,
    "tags": None,
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


@pytest.fixture(scope="module")
def shared_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def database_url(shared_url: str) -> str:
    with psycopg.connect(shared_url, options="-c lock_timeout=10s") as connection:
        for table in ("jobs", "jobs_history", "enqueue_keys", "definitions"):
            connection.execute(f"delete from mainspring.{table}".encode())
    return shared_url


@pytest.fixture
def noop(connection: psycopg.Connection) -> None:
    connection.execute("insert into mainspring.definitions (key) values ('noop')")


@pytest.fixture(params=[*BLOCKING, *ASYNC])
def caller(request: pytest.FixtureRequest, database_url: str, noop: None) -> Iterator[Caller]:
    kind = request.param
    opened = (
        blocking_caller(BLOCKING[kind], database_url)
        if kind in BLOCKING
        else async_caller(ASYNC[kind], database_url)
    )
    with opened as made:
        yield made


def stored(connection: psycopg.Connection, columns: str) -> list[Any]:
    query = f"select {columns} from mainspring.jobs order by job_id"
    return connection.execute(query.encode()).fetchall()


# Every kind


def test_an_enqueue_is_stored_when_the_caller_commits_and_not_before(caller, connection):
    [(job_id, is_new)] = caller.run(enqueue())
    assert stored(connection, "job_id") == []

    caller.commit()

    assert is_new is True
    assert stored(connection, "job_id, definition, payload") == [(job_id, "noop", PAYLOAD)]


def test_an_enqueue_is_gone_when_the_caller_rolls_back(caller, connection):
    caller.run(enqueue())

    caller.rollback()

    assert stored(connection, "job_id") == []


def test_every_option_may_be_left_out(caller, connection):
    [(job_id, _)] = caller.run(enqueue_with_options())
    caller.commit()

    assert stored(connection, "job_id, payload, waits_for, dedupe_key, tags") == [
        (job_id, PAYLOAD, None, None, None)
    ]


def test_every_option_arrives_as_it_was_given(caller, connection):
    options = {
        "queue": "mail",
        "priority": 7,
        "max_attempts": 3,
        "scheduled_for": SOON,
        "deadline": SOON + timedelta(hours=1),
        "dedupe_key": "a:b%c",
        "dedupe_window": timedelta(minutes=5),
        "idempotency_key": "once",
        "correlation_id": "trace",
        "tags": ["red", 'a "b", {c}'],
    }

    caller.run(enqueue_with_options(**options))
    caller.commit()

    columns = "queue, priority, max_attempts, scheduled_for, deadline_at, dedupe_key, tags"
    assert stored(connection, columns) == [
        ("mail", 7, 3, SOON, SOON + timedelta(hours=1), "a:b%c", ["red", 'a "b", {c}'])
    ]


def test_a_delay_and_no_tags_arrive_as_they_were_given(caller, connection):
    caller.run(enqueue_with_options(delay=timedelta(days=1, microseconds=5), tags=[]))
    caller.commit()

    [(delay, tags)] = stored(connection, "scheduled_for - created_at, tags")
    assert delay == timedelta(days=1, microseconds=5)
    assert tags == []


def test_a_batch_is_one_job_a_payload(caller, connection):
    payloads = TextArray([b'{"n": 1}', '{"n": "☃"}'.encode()])

    rows = caller.run(enqueue_many(payloads, dedupe_keys=[None, "b"], tags=["x"]))
    caller.commit()

    assert stored(connection, "job_id, payload, dedupe_key, tags") == [
        (rows[0][0], {"n": 1}, None, ["x"]),
        (rows[1][0], {"n": "☃"}, "b", ["x"]),
    ]


def test_a_job_is_canceled_and_retried(caller, connection):
    [(job_id, _)] = caller.run(enqueue())
    job = {"job_id": job_id, "tenant_id": "default"}

    canceled = caller.run(Call(JOBS["cancel"].sql, {**job, "reason": "a test"}))
    retried = caller.run(Call(JOBS["retry"].sql, {**job, "payload": None}))
    caller.commit()

    assert (canceled, retried) == ([("canceled",)], [(job_id,)])
    assert stored(connection, "job_id, state, payload") == [(job_id, "queued", PAYLOAD)]


def test_an_unknown_definition_is_our_error(caller):
    with pytest.raises(UnknownDefinition) as caught:
        caller.run(enqueue("nope"))

    assert caught.value.key == "nope"


def test_a_duplicate_is_our_error_and_names_the_job(caller):
    [(job_id, _)] = caller.run(enqueue_with_options(dedupe_key="k"))

    with pytest.raises(DuplicateJob) as caught:
        caller.run(enqueue_with_options(dedupe_key="k"))

    assert (caught.value.dedupe_key, caught.value.job_id) == ("k", job_id)


def test_an_invalid_option_is_our_error_without_the_drivers_words(caller):
    with pytest.raises(InvalidOption) as caught:
        caller.run(enqueue_with_options(priority=1001))

    assert str(caught.value) == "priority must be from 0 (first) to 1000 (last), not 1001"


def test_an_error_that_is_not_ours_stays_the_drivers(caller):
    with pytest.raises(Exception, match="division by zero") as caught:
        caller.run(Call("select 1 / %(zero)s::integer", {"zero": 0}))

    assert not type(caught.value).__module__.startswith("mainspring")


# One kind


def test_autocommit_stores_at_once(database_url, noop, connection):
    with psycopg.connect(database_url, autocommit=True) as own:
        [(job_id, _)] = calls.run(own, enqueue())

        assert stored(connection, "job_id") == [(job_id,)]


def test_a_pipeline_gives_rows_and_errors_at_once(database_url, noop):
    with psycopg.connect(database_url) as own, own.pipeline():
        own.execute("select 1")
        [(_, is_new)] = calls.run(own, enqueue())

        with pytest.raises(UnknownDefinition):
            calls.run(own, enqueue("nope"))
    assert is_new is True


async def test_an_async_pipeline_gives_rows_and_errors_at_once(database_url, noop):
    async with of_async_psycopg(database_url) as own, own.pipeline():
        [(_, is_new)] = await calls.arun(own, enqueue())

        with pytest.raises(UnknownDefinition):
            await calls.arun(own, enqueue("nope"))
    assert is_new is True


def test_the_callers_cursor_factory_does_not_matter(database_url, noop):
    with psycopg.connect(database_url, cursor_factory=psycopg.RawCursor) as own:
        assert calls.run(own, enqueue())[0][1] is True


@pytest.mark.parametrize(("factory", "prepared"), [(psycopg.Cursor, 1), (psycopg.ClientCursor, 0)])
def test_nothing_is_prepared_where_the_caller_binds_on_the_client(
    database_url, noop, factory, prepared
):
    with psycopg.connect(database_url, cursor_factory=factory, prepare_threshold=0) as own:
        calls.run(own, enqueue())

        row = own.execute("select count(*) from pg_prepared_statements", prepare=False).fetchone()
    assert row == (prepared,)


@pytest.mark.parametrize("option", [{"stream_results": True}, {"yield_per": 10}])
def test_a_connection_that_streams_its_results_works(database_url, noop, option):
    update = Call(
        "update mainspring.jobs set priority = %(priority)s returning priority", {"priority": 5}
    )
    with of_sqlalchemy(database_url, "psycopg") as own:
        streaming = own.execution_options(**option)

        assert calls.run(streaming, enqueue())[0][1] is True
        assert calls.run(streaming, update) == [(5,)]


@pytest.mark.parametrize("option", [{"stream_results": True}, {"yield_per": 10}])
async def test_an_async_connection_that_streams_its_results_works(database_url, noop, option):
    async with of_async_sqlalchemy(database_url, "asyncpg") as own:
        streaming = await own.execution_options(**option)

        assert (await calls.arun(streaming, enqueue()))[0][1] is True


async def test_a_blocking_session_inside_an_async_one_works(database_url, noop):
    async with of_async_session(database_url, "asyncpg") as session:
        [(_, is_new)] = await session.run_sync(calls.run, enqueue())

    assert is_new is True


def test_an_atomic_block_of_django_takes_the_job_with_it(database_url, noop, connection):
    with of_django(database_url) as own:
        own.set_autocommit(True)
        with pytest.raises(UnknownDefinition):
            enqueue_two(own, "noop", "nope")
        assert stored(connection, "job_id") == []

        enqueue_two(own, "noop", "noop")
        assert len(stored(connection, "job_id")) == 2


@django_transaction.atomic
def enqueue_two(connection: Any, first: str, second: str) -> None:
    calls.run(connection, enqueue(first))
    calls.run(connection, enqueue(second))


def test_a_subclass_is_of_its_parents_kind(database_url, noop):
    class Own(psycopg.Connection[Any]):
        pass

    with Own.connect(database_url) as own:
        assert calls.run(own, enqueue())[0][1] is True


async def test_our_arrays_become_lists(database_url):
    call = Call(
        "select %(ids)s::bigint[], %(names)s::text[]",
        {"ids": IntegerArray([1, 2]), "names": TextArray([b"a", None])},
    )

    async with of_asyncpg(database_url) as own:
        assert await calls.arun(own, call) == [([1, 2], ["a", None])]


# What is refused


async def test_run_refuses_an_async_connection(database_url):
    async with of_asyncpg(database_url) as own:
        with pytest.raises(UnsupportedConnection, match=r"asyncpg.*async.*use \.aenqueue\("):
            calls.run(own, enqueue())


async def test_arun_refuses_a_blocking_connection(connection):
    with pytest.raises(UnsupportedConnection, match=r"psycopg.*blocking.*use \.enqueue\("):
        await calls.arun(connection, enqueue())


def test_an_object_that_is_no_connection_is_refused_with_what_is_accepted():
    with pytest.raises(UnsupportedConnection) as caught:
        calls.is_async_connection("postgresql://")

    assert str(caught.value).startswith("cannot use builtins.str as a connection; give a psycopg")
    for name in ("asyncpg", "SQLAlchemy", "AsyncSession", "Django"):
        assert name in str(caught.value)


def test_a_database_that_is_not_postgresql_is_refused():
    engine = sqlalchemy.create_engine("sqlite://")
    with (
        engine.connect() as own,
        pytest.raises(UnsupportedConnection, match=r"engine\.base\.Connection on sqlite"),
    ):
        calls.run(own, enqueue())


def test_django_on_another_database_is_refused():
    from django.db.backends.sqlite3.base import DatabaseWrapper

    with pytest.raises(UnsupportedConnection, match="DatabaseWrapper on sqlite"):
        calls.run(DatabaseWrapper({"NAME": ":memory:"}), enqueue())


def test_no_library_is_imported_that_the_caller_does_not_use():
    source = """
import sys
import mainspring.db.calls
print(sorted({"asyncpg", "django", "sqlalchemy"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"


# Errors


def test_a_database_without_our_schema_is_told_from_one_with_it(database_url):
    with psycopg.connect(database_url) as own:
        own.execute("drop schema mainspring cascade")

        with pytest.raises(SchemaMissing):
            calls.run(own, enqueue())


def test_a_nul_in_the_payload_is_our_error(connection, noop):
    params = {"definition": "noop", "payload": '{"a": "\\u0000"}'}

    with pytest.raises(InvalidPayload, match="NUL"):
        calls.run(connection, Call(JOBS["enqueue"].sql, params))


def test_a_job_that_does_not_exist_is_our_error(connection):
    params = {"job_id": 404, "tenant_id": "default", "reason": None}

    with pytest.raises(JobNotFound, match="there is no job 404"):
        calls.run(connection, Call(JOBS["cancel"].sql, params))


def test_our_code_without_our_facts_is_someone_elses_error(connection):
    call = Call("select mainspring.refuse('MS020', 'a trigger of theirs')", {})

    with pytest.raises(psycopg.Error, match="a trigger of theirs"):
        calls.run(connection, call)


# The two ways to write a statement anew


@pytest.mark.parametrize(
    ("given", "expected", "names"),
    [
        ("%(a)s, %(b)s, %(a)s", "$1, $2, $1", ("a", "b")),
        ("%(a)s::text || ':' || 5 %% 2", "$1::text || ':' || 5 % 2", ("a",)),
        ("%(a)s::jsonb", "$1::text::jsonb", ("a",)),
        ("%(a)s::text[]::jsonb[]", "$1::text[]::jsonb[]", ("a",)),
        ("%(a)s::jsonb[]", "$1::jsonb[]", ("a",)),
        ("%(a)s::jsonbs", "$1::jsonbs", ("a",)),
        ("select 1", "select 1", ()),
    ],
)
def test_placeholders_become_numbers(given, expected, names):
    assert calls.with_numbers(given) == (expected, names)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("%(a)s::text", r" :a\:\:text"),
        ("%(a)s::jsonb", r" :a\:\:text\:\:jsonb"),
        ("':b' || 5 %% 2", r"'\:b' || 5 % 2"),
        ("x[1:%(a)s]", r"x[1\: :a]"),
    ],
)
def test_placeholders_become_names_after_colons(given, expected):
    assert calls.with_colons(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        *(statement.sql for statement in JOBS.values()),
        "select ':a', '::b', 'c:%%', '\\:', x[1:2], x[1:%(d)s], y := %(d)s, limit%(e)s",
    ],
)
def test_sqlalchemy_sends_what_was_written(given):
    text = sqlalchemy.text(calls.with_colons(given))
    sent = str(text.compile(dialect=psycopg_dialect.dialect()))

    assert "".join(sent.replace("::text::jsonb", "::jsonb").split()) == "".join(given.split())
