"""Log lines about jobs: what they name, and how many there are by `log_jobs`."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import psycopg
import pytest

from mainspring import Context, Fail, Mainspring
from mainspring.testing import adrain
from tests.support.log_lines import Line, captured_lines, named
from tests.support.schedules import insert_due, scheduling, slots
from tests.support.waiting import await_until
from tests.support.workers import ended, retried, working

OF_JOBS = {"job_started", "job_succeeded", "attempt_failed", "job_dead", "job_ended"}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        add_jobs(app)
        yield app


def add_jobs(app: Mainspring) -> None:
    @app.job(queue="mail", max_attempts=2)
    async def divide(by: int) -> float:
        return 1 / by

    @app.job
    async def refuse() -> Fail:
        return Fail("not today")

    @app.job
    def pause(ctx: Context) -> None:
        ctx.log.warning("pausing", word="please")

    @app.job
    async def insert(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("select 1")


@pytest.mark.parametrize(
    ("log_jobs", "events"),
    [
        ("none", []),
        ("failures", ["attempt_failed", "job_ended"]),
        (
            "all",
            [
                *("attempt_failed", "job_ended", "job_started", "job_started", "job_started"),
                *("job_started", "job_succeeded", "job_succeeded"),
            ],
        ),
    ],
)
async def test_a_worker_logs_as_much_of_jobs_as_it_is_asked_to(app, log_jobs, events):
    with captured_lines() as lines:
        async with working(app, log_jobs=log_jobs):
            good = await app.aenqueue("divide", {"by": 1})
            bad = await app.aenqueue("divide", {"by": 0})
            other = await app.aenqueue("insert", {})
            refused = await app.aenqueue("refuse", {})
            for handle in (good, other, refused):
                await ended(handle)
            await retried(bad)

    assert sorted(line["event"] for line in lines if line["event"] in OF_JOBS) == events
    for line in lines:
        if line["event"] in OF_JOBS:
            assert {"tenant", "job_id", "definition", "queue", "attempt", "worker"} <= set(line)


async def test_a_line_names_the_job_and_what_made_it(app, connection: psycopg.Connection):
    await app.aregister_definitions()
    insert_due(connection, "nightly", definition="divide", payload={"by": 0}, max_attempts=1)
    with captured_lines() as lines:
        async with working(app) as worker, scheduling(app):
            await await_until(lambda: named(lines, "job_dead"))

    (slot,) = slots(connection, "nightly")
    (line,) = named(lines, "job_dead")
    assert facts(line, "tenant", "definition", "queue", "attempt", "worker") == {
        "tenant": "default",
        "definition": "divide",
        "queue": "mail",
        "attempt": 1,
        "worker": worker.worker_id,
    }
    assert line["schedule"] == "nightly"
    assert datetime.fromisoformat(line["slot"]) == slot["scheduled_for"]
    assert line["error"] == "ZeroDivisionError: division by zero"
    assert "return 1 / by" in line["details"]


async def test_the_lines_of_a_handler_name_its_job(app):
    await app.aregister_definitions()
    handle = await app.aenqueue("pause", {})
    with captured_lines() as lines:
        await adrain(app)

    (line,) = named(lines, "pausing")
    assert facts(line, "job_id", "tenant", "definition", "queue", "attempt", "word") == {
        "job_id": handle.id,
        "tenant": "default",
        "definition": "pause",
        "queue": "default",
        "attempt": 1,
        "word": "please",
    }


async def test_a_worker_says_which_jobs_it_has_no_handler_for(app, connection: psycopg.Connection):
    connection.execute("insert into mainspring.definitions (key, kind) values ('x', 'python')")
    async with Mainspring(app.database.url) as other:
        jobs = [await other.aenqueue("x", {}) for _ in range(3)]
    with captured_lines() as lines:
        async with working(app) as worker:
            await await_until(lambda: sum(e["count"] for e in named(lines, "handler_unknown")) == 3)

    line = named(lines, "handler_unknown")[0]
    assert line["worker"] == worker.worker_id
    assert line["definitions"] == ["x"]
    assert set(line["job_ids"]) <= {handle.id for handle in jobs}


async def test_a_worker_that_stops_says_which_jobs_it_waits_for(app):
    @app.job
    async def stay() -> None:
        await asyncio.Event().wait()

    with captured_lines() as lines:
        async with working(app) as worker:
            handle = await app.aenqueue("stay", {})
            await await_until(lambda: worker.running)

    (line,) = named(lines, "worker_stopping")
    assert facts(line, "worker", "count", "job_ids", "drain_seconds") == {
        "worker": worker.worker_id,
        "count": 1,
        "job_ids": [handle.id],
        "drain_seconds": 5,
    }


REFUSED = """
create function refuse() returns trigger language plpgsql as
    'begin raise exception using errcode = ''23514'', message = ''no room''; end';
create trigger refuse before insert on mainspring.jobs_history for each row
    when (new.state = 'succeeded') execute function refuse();
"""


async def test_a_report_that_is_refused_names_its_job(app, connection: psycopg.Connection):
    connection.execute(REFUSED)
    with captured_lines() as lines:
        async with working(app) as worker:
            handle = await app.aenqueue("divide", {"by": 1})
            await ended(handle)

    line = named(lines, "report_refused")[0]
    assert facts(line, "job_id", "tenant", "definition", "queue", "worker") == {
        "job_id": handle.id,
        "tenant": "default",
        "definition": "divide",
        "queue": "mail",
        "worker": worker.worker_id,
    }


def facts(line: Line, *names: str) -> dict[str, Any]:
    return {name: line.get(name) for name in names}
