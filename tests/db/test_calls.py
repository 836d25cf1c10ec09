"""Our statements on every kind of connection a caller may own, in the caller's transaction."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from django.db import transaction as django_transaction

from mainspring.db import calls
from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.calls import Call
from mainspring.db.template_databases import fresh_database
from mainspring.domain.errors import (
    DuplicateJob,
    InvalidOption,
    UnknownDefinition,
    UnsupportedConnection,
)
from tests.support.callers import (
    ASYNC,
    BLOCKING,
    JOBS,
    PAYLOAD,
    SOON,
    Caller,
    async_caller,
    blocking_caller,
    enqueue,
    enqueue_many,
    enqueue_with_options,
    of_async_psycopg,
    of_async_session,
    of_async_sqlalchemy,
    of_asyncpg,
    of_django,
    of_sqlalchemy,
)


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
    connection.execute("insert into mainspring.definitions (key, kind) values ('noop', 'python')")


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
        "approvals_needed": 1,
    }

    caller.run(enqueue_with_options(**options))
    caller.commit()

    columns = "queue, priority, max_attempts, scheduled_for, deadline_at, dedupe_key, tags"
    assert stored(connection, columns) == [
        ("mail", 7, 3, SOON, SOON + timedelta(hours=1), "a:b%c", ["red", 'a "b", {c}'])
    ]
    assert stored(connection, "state") == [("awaiting_approval",)]


def test_parents_arrive_as_they_were_given(caller, connection):
    [(parent, _)] = caller.run(enqueue())
    [(child, _)] = caller.run(enqueue_with_options(after=[parent], on_parent_failure="wait"))
    caller.commit()

    rows = connection.execute(
        "select parent_id, on_failure from mainspring.dependencies where job_id = %s", (child,)
    ).fetchall()
    assert rows == [(parent, "wait")]


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

    assert str(caught.value).startswith("cannot use builtins.str as a connection; pass a psycopg")
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
