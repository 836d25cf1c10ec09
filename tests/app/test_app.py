"""The Python interface: the code as people write it, on a real database."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import mainspring
from mainspring import Backoff, Context, JobState, Mainspring
from mainspring.domain.errors import (
    InputError,
    InvalidDefinition,
    InvalidOption,
    InvalidPayload,
    UnsupportedConnection,
)
from mainspring.domain.errors.database import DatabaseUnreachable, SchemaMissing
from mainspring.settings import load
from mainspring.testing import adrain, drain
from tests.support.databases import empty_database


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


@pytest.fixture
def greet(app: Mainspring) -> Any:
    @app.job
    async def greet(name: str, *, loudly: bool = False) -> str:
        """Greet someone.

        The second paragraph is for readers of the code.
        """
        return f"Hello, {name}{'!' if loudly else '.'}"

    return greet


def payloads(connection: psycopg.Connection) -> list[Any]:
    rows = connection.execute("select payload from mainspring.job_status order by job_id")
    return [payload for (payload,) in rows.fetchall()]


# As printed in the README and the guides


async def test_a_job_is_declared_enqueued_in_three_ways_and_run(app, database_url, connection):
    @app.job(queue="mail", max_attempts=5, timeout=timedelta(seconds=30))
    async def send_welcome(user_id: int, *, ctx: Context) -> dict[str, int]:
        return {"user_id": user_id, "attempt": ctx.attempt}

    handle = await send_welcome.aenqueue(user_id=7)
    with psycopg.connect(database_url) as conn:
        send_welcome.enqueue(user_id=8, connection=conn)
    many = await app.aenqueue_many(send_welcome, [{"user_id": i} for i in range(10)])

    assert (await adrain(app, queue="mail")).succeeded == 12
    assert await handle.aresult(timeout=1) == {"user_id": 7, "attempt": 1}
    assert (await app.jobs.aget(many[9])).result == {"user_id": 9, "attempt": 1}


async def test_the_function_is_still_a_function(greet):
    assert await greet("Ada", loudly=True) == "Hello, Ada!"
    assert greet.__name__ == "greet"
    assert greet.__doc__.startswith("Greet someone.")
    assert repr(greet) == "<job function greet>"


async def test_arguments_are_checked_when_the_job_is_enqueued(app, greet, connection):
    with pytest.raises(InvalidPayload, match="missing a required argument: 'name'"):
        await greet.aenqueue()
    with pytest.raises(InvalidPayload, match="unexpected keyword argument 'nam'"):
        greet.enqueue(name="Ada", nam="Bob")
    with pytest.raises(InvalidPayload, match="missing a required argument: 'name'"):
        await app.aenqueue_many(greet, [{"name": "Ada"}, {}])
    assert payloads(connection) == []


async def test_options_are_given_apart_or_among_the_arguments(greet):
    one = await greet.options(priority=5, tags=["a"]).aenqueue("Ada")
    two = await greet.aenqueue("Ada", priority=5, tags=["a"])

    for handle in (one, two):
        job = await handle.ajob()
        assert (job.priority, job.tags, job.payload) == (5, ("a",), {"name": "Ada"})


async def test_options_add_to_those_that_were_chosen_before(app, greet):
    parent = await greet.aenqueue("Ada")
    tagged = greet.options(tags=["a"], connection=None).options(priority=5)
    flow = app.flow("letters")
    step = flow.add(tagged, name="Ada")

    one = await tagged.aenqueue("Ada", after=[parent])
    (many,) = await app.aenqueue_many(tagged, [{"name": "Ada"}])
    followup = await app.aenqueue_followup(tagged, {"name": "Ada"}, correlation_id="c")
    found = [one.id, many, followup.id, (await flow.aenqueue()).jobs[step].id]

    jobs = [await app.jobs.aget(job_id) for job_id in found]
    assert [(job.priority, job.tags) for job in jobs] == [(5, ("a",))] * 4
    assert (jobs[0].state, jobs[2].correlation_id) == (JobState.BLOCKED, "c")


def test_a_connection_that_was_chosen_before_is_used(app, greet, database_url, connection):
    with psycopg.connect(database_url) as theirs:
        chosen = greet.options(connection=theirs)
        chosen.enqueue("Ada", tags=["a"])
        app.enqueue_many(chosen, [{"name": "Bob"}])
        theirs.rollback()

    assert payloads(connection) == []


async def test_an_argument_wins_over_an_option_of_its_name(app):
    @app.job
    async def sort(queue: str, priority: int = 1) -> None: ...

    job = await (await sort.aenqueue(queue="letters", priority=3)).ajob()

    assert job.payload == {"queue": "letters", "priority": 3}
    assert (job.queue, job.priority) == ("default", 100)


async def test_a_definition_is_stored_as_declared_and_again_when_it_changes(app, connection):
    app.job(key="a", queue="mail", backoff=Backoff(base=timedelta(seconds=9)))(lambda: None)
    await app.aregister_definitions()
    query = "select queue, backoff_base, description from mainspring.definitions where key = 'a'"
    assert connection.execute(query).fetchone() == ("mail", timedelta(seconds=9), "")

    with Mainspring(app.settings.database_url) as newer:
        newer.job(key="a", queue="post", description="Sends.")(lambda: None)
        newer.register_definitions()
    assert connection.execute(query).fetchone() == ("post", timedelta(seconds=5), "Sends.")


async def test_the_first_line_of_the_docstring_describes_the_job(app, greet, connection):
    await app.aregister_definitions()

    found = connection.execute("select description from mainspring.definitions").fetchone()
    assert found == ("Greet someone.",)


def test_two_functions_cannot_share_a_key(app, greet):
    with pytest.raises(
        InvalidDefinition, match=r"the key 'greet' is already used by tests\.app\.test_app\."
    ):
        app.job(key="greet")(lambda: None)


def test_a_mistyped_option_of_a_job_is_noticed(app):
    with pytest.raises(InvalidDefinition, match="no option max_atempts; did you mean max_attempts"):
        app.job(max_atempts=3)(lambda: None)


async def test_a_plain_worker_runs_with_its_three_arguments(app):
    def ingest(job_data: dict[str, Any], job_id: str, queue: Any) -> dict[str, Any]:
        queue.update_job(job_id, {"progress": 50})
        return {"id": job_id, **job_data}

    app.register_worker("ingestion", ingest)
    handle = await app.aenqueue("ingestion", {"file": "a.txt"})
    await adrain(app)

    assert await handle.aresult(timeout=1) == {"id": str(handle.id), "file": "a.txt"}


def test_a_plain_worker_cannot_be_async(app):
    async def ingest(job_data: Any, job_id: str, queue: Any) -> None: ...

    with pytest.raises(InvalidDefinition, match="must be a regular function"):
        app.register_worker("ingestion", ingest)


async def test_a_hundred_thousand_jobs_are_enqueued_at_once(app, greet, connection):
    job_ids = await app.aenqueue_many(greet, ({"name": str(n)} for n in range(100_000)))

    assert len(set(job_ids)) == 100_000
    query = "select count(*), count(distinct payload) from mainspring.jobs"
    assert connection.execute(query).fetchone() == (100_000, 100_000)
    assert (await app.jobs.aget(job_ids[99_999])).payload == {"name": "99999"}


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201])
def test_bulk_from_plain_code_enqueues_every_payload_in_order(app, greet, count):
    job_ids = app.enqueue_many(greet, [{"name": str(n)} for n in range(count)])

    assert job_ids == sorted(set(job_ids))
    assert len(job_ids) == count


# Results from plain code


def test_plain_code_waits_for_a_result_and_reads_the_job(app, greet):
    handle = greet.enqueue("Ada")
    drain(app)

    assert handle.result(timeout=1) == "Hello, Ada."
    assert handle.job().state is JobState.SUCCEEDED


async def test_a_result_that_comes_while_one_waits_is_seen(app, greet):
    handle = await greet.aenqueue("Ada")
    waiting = asyncio.create_task(handle.aresult(timeout=10))
    await asyncio.to_thread(drain, app)

    assert await waiting == "Hello, Ada."


# Connections


def test_a_job_enqueued_on_a_psycopg_connection_lives_and_dies_with_its_transaction(
    greet, database_url, connection
):
    with psycopg.connect(database_url) as theirs:
        greet.enqueue("Ada", connection=theirs)
        greet.options(connection=theirs).enqueue("Bob")
        assert payloads(connection) == []
        theirs.commit()
        greet.enqueue("Eve", connection=theirs)
        theirs.rollback()

    assert payloads(connection) == [{"name": "Ada"}, {"name": "Bob"}]


async def test_a_job_enqueued_on_a_sqlalchemy_session_lives_and_dies_with_its_transaction(
    greet, database_url, connection
):
    engine = create_async_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    async with AsyncSession(engine) as session:
        await greet.aenqueue("Ada", connection=session)
        await greet.options(connection=session).aenqueue("Bob")
        await session.commit()
        await greet.aenqueue("Eve", connection=session)
        await session.rollback()
    await engine.dispose()

    assert payloads(connection) == [{"name": "Ada"}, {"name": "Bob"}]


def test_an_orm_free_sqlalchemy_connection_will_do(greet, database_url, connection):
    url = database_url.replace("postgresql:", "postgresql+psycopg:")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as theirs:
        greet.enqueue("Ada", connection=theirs)
    engine.dispose()

    assert payloads(connection) == [{"name": "Ada"}]


async def test_a_connection_of_the_wrong_kind_is_refused(greet, connection):
    with pytest.raises(UnsupportedConnection, match="is a blocking connection"):
        await greet.aenqueue("Ada", connection=connection)
    with pytest.raises(UnsupportedConnection, match=r"cannot use builtins\.str"):
        greet.enqueue("Ada", connection="postgresql://")


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_connection_killed_while_idle_is_replaced(greet, connection, is_async):
    query = """select pg_terminate_backend(pid, 5000) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()"""
    for name in ("Ada", "Bob"):
        if is_async:
            await greet.aenqueue(name)
        else:
            greet.enqueue(name)
        connection.execute(query)

    assert payloads(connection) == [{"name": "Ada"}, {"name": "Bob"}]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_parent_and_child_of_a_fork_both_go_on(app, greet, connection):
    query = "select pid from pg_stat_activity where datname = current_database()"
    greet.enqueue("before")
    asyncio.run(greet.aenqueue("before"))
    before = set(connection.execute(query).fetchall())
    child = os.fork()
    if not child:
        try:
            greet.enqueue("child")
            app.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert set(connection.execute(query).fetchall()) >= before
    greet.enqueue("parent")
    said = [payload["name"] for payload in payloads(connection)]
    assert said == ["before", "before", "child", "parent"]


def test_many_threads_enqueue_at_once(greet, connection):
    threads = [threading.Thread(target=greet.enqueue, args=(str(n),)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(payloads(connection)) == 50


async def test_many_tasks_enqueue_at_once(greet, connection):
    await asyncio.gather(*(greet.aenqueue(str(n)) for n in range(50)))

    assert len(payloads(connection)) == 50


async def test_many_tasks_that_are_the_first_share_one_pool(app):
    pools = await asyncio.gather(*(app.database.async_pool() for _ in range(50)))

    assert set(pools) == {await app.database.async_pool()}


def test_one_app_serves_one_event_loop_after_another(greet, connection):
    for name in ("Ada", "Bob"):
        asyncio.run(greet.aenqueue(name))

    assert len(payloads(connection)) == 2


# The database


def test_a_database_that_cannot_be_reached_is_named_without_its_password():
    with (
        Mainspring("postgresql://ada:secret@127.0.0.1:1/none") as app,
        pytest.raises(DatabaseUnreachable, match=r"cannot connect to .*ada:\*\*\*@127") as refused,
    ):
        app.enqueue("greet", {})
    assert "secret" not in str(refused.value)


def test_a_database_without_the_schema_says_what_to_do(server_url):
    with (
        empty_database(server_url) as empty_url,
        Mainspring(empty_url) as app,
        pytest.raises(SchemaMissing, match="run `mainspring migrate`"),
    ):
        app.enqueue("greet", {})


def test_the_url_comes_from_the_argument_then_the_environment(monkeypatch):
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", "postgresql://environment")

    assert Mainspring().settings.database_url == "postgresql://environment"
    assert Mainspring("postgresql://argument").settings.database_url == "postgresql://argument"
    settings = load(database_url="postgresql://settings")
    assert Mainspring(settings=settings).settings.database_url == "postgresql://settings"


def test_an_option_that_does_not_exist_is_refused(app):
    with pytest.raises(InvalidOption, match=r"is not an enqueue option.*did you mean priority"):
        app.enqueue("greet", {}, prioritty=1)


def test_a_name_the_package_does_not_have_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Mainspringg'"):
        _ = mainspring.Mainspringg  # type: ignore[attr-defined]


async def test_a_blocking_call_in_an_event_loop_says_what_to_await(app, greet):
    handle = await greet.aenqueue(name="Ada")

    with pytest.raises(InputError, match="await the async method"):
        handle.result(timeout=1)


async def test_a_follow_up_is_checked_against_its_handler(app, greet):
    with pytest.raises(InvalidPayload, match="do not match the handler"):
        await app.aenqueue_followup(greet, {"nme": "Ada"})
